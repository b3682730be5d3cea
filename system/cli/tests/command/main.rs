//! The real command against the real broker, as processes.
//!
//! The binary of the broker must be next to that of this crate; `cargo build -p sindri-broker` builds it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod administration;
mod admins;
mod agents;
mod apply;
mod approvals;
mod ci;
mod contexts;
mod diff;
mod errors;
mod first_five_minutes;
mod nouns;
mod output;
mod reporting_agent;
mod status;
mod support;
mod terminal;
mod tls;
