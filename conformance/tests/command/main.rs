//! The command with real processes on real ports, and checks that nothing is left behind.
//!
//! The other binaries are expected next to this crate's:
//! `cargo build -p sindri-broker -p sindri-agent -p sindri-apiserver -p sindri-cli` builds them.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod agent;
mod demo;
mod mistakes;
mod signals;
mod suite;
mod support;
