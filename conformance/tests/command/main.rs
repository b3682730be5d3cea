//! The command as its users run it: real processes on real ports, and nothing of them left afterwards.
//!
//! The other binaries are expected next to this crate's:
//! `cargo build --release -p sindri-broker -p sindri-agent -p sindri-apiserver -p sindri-cli` makes them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agent;
mod demo;
mod mistakes;
mod signals;
mod suite;
mod support;
