//! Generated sequences of requests, sent to the simulated server and to a real one.
//!
//! A sequence is an exchange in the recorder's language ([`sequence`]), run and normalised by the recorder's code. Specific to
//! this module are the generation ([`compose`]), the comparison of two running servers ([`run`]), and the reduction of a sequence
//! that differs to a short one ([`shrink`]).

mod client_side_apply;
pub mod compose;
pub mod coverage;
pub mod difference_class;
mod draft;
mod invalid_requests;
pub mod kinds;
mod objects;
mod patches;
mod protobuf_variants;
pub mod random;
mod requests;
pub mod run;
pub mod sequence;
pub mod session;
pub mod setup;
pub mod shrink;
pub mod waiver;
