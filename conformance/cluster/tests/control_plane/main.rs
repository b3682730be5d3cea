//! Real control planes, and nothing of them left afterwards.
//!
//! `cargo xtask test` builds the control plane and then runs all of these. A plain `cargo test` runs only those that
//! need no control plane, and names the others.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod cache;
mod command;
mod foreign;
mod killed;
mod kind;
mod life;
mod pool;
mod support;
