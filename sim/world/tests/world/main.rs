//! Tests of the simulated world, one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
mod engine;
mod large;
mod webhooks;
