//! Random worlds: a seed makes a whole scenario, with its fleet, its workload and its faults.
//!
//! The scenario of a world is an ordinary list of steps, so that a failing one can be reduced step by step to a short
//! scenario file.

mod documents;
mod faults;
mod generator;
mod minimise;
mod operators;
mod people;
mod pools;
mod random_stack;
mod reduction;
mod sequences;

pub use generator::generate;
pub use minimise::{Minimised, minimise};
pub use pools::{INVALID_ANNOTATION, PART_PREFIX, PERSON_FINALIZER, PERSON_LABEL, SECRET_CANARY};
