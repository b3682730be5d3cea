//! The programs that are measured, and servers for them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use sindri_conformance::binaries::Binaries;

use crate::broker::Bench;

/// Programs, and servers for them.
pub struct PeopleBench {
    /// Starts brokers.
    pub servers: Bench,
    /// Binaries that are measured.
    pub binaries: Binaries,
    /// The program `helm`.
    pub helm: Option<PathBuf>,
}

impl PeopleBench {
    /// Returns the command line with these arguments, and without the settings and contexts of the user.
    pub(super) fn command_line(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binaries.cli);
        command.args(arguments).env_clear().env("HOME", &self.servers.disk);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}
