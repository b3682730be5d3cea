//! Guests of the simulated world: controllers as other people write them, some right and some wrong on purpose.
//!
//! They know nothing of the simulation: each is handed a `kube::Client`, and a clock and entropy where it needs them.
//! [`harness`] gives them machines, API servers and faults; the tests of this crate prove that the right ones are
//! right, and that the world finds what is wrong with the others.

pub mod client;
pub mod database;
pub mod follow;
pub mod harness;
pub mod queue;
pub mod shapes;

/// The page for authors, whose example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guests.md")]
mod page {}
