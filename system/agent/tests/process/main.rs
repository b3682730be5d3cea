//! The agent as a process: its settings, its mistakes, whom it believes, and what it answers when it is asked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod encrypted;
mod inspect;
mod key_file;
mod probes;
mod settings;
mod support;
