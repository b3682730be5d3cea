//! Tests of the agent's process: settings, error messages, TLS, probes, and the read-only commands.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod encrypted;
mod inspect;
mod key_file;
mod probes;
mod proposals;
mod proxy;
mod published_broker;
mod settings;
mod support;
mod traces;
