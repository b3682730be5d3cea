//! Guests of the simulated world: controllers as an outside author would write them, some correct and some wrong on
//! purpose.
//!
//! They know nothing of the simulation: each receives a `kube::Client`, and a clock and entropy where it needs them.
//! [`harness`] provides hosts, API servers and faults. The tests of this crate show that the correct controllers pass,
//! and that the simulation finds the mistakes of the others.

pub mod client;
pub mod compare;
pub mod database;
pub mod harness;
pub mod list_watch;
pub mod object;
pub mod owners;
pub mod self_healing;
pub mod shapes;
pub mod work_queue;

/// The page for authors of controllers; its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guests.md")]
mod page {}
