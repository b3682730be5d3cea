//! Real control planes, and checks that nothing is left behind.
//!
//! `cargo xtask test` builds the control plane and then runs all of these. A plain `cargo test` runs only those that
//! need no control plane, and lists the others as ignored.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod bad_input;
mod cache;
mod command;
mod existing_cluster;
mod killed;
mod kind;
mod pool;
mod support;
mod usage;
