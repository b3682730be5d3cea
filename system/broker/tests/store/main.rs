//! The contract of the store: what every implementation does, on real databases.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approvals;
mod audit;
mod concurrency;
mod deliveries;
mod fleet;
mod keys;
mod looking_again;
mod migrations;
mod model;
mod sequences;
mod status;
mod succession;
mod support;
mod targeting;
