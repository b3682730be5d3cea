//! Finds the binaries of the system: next to this program, where cargo puts all binaries of a build.
//!
//! Left out on purpose: a search in `PATH`, which would test the installed version.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A binary that does not exist.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} is not in {directory}: build it with `cargo build --release -p {package}`")]
pub struct MissingBinary {
    name: &'static str,
    package: &'static str,
    directory: String,
}

/// Paths of the binaries.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The broker.
    pub broker: PathBuf,
    /// The agent.
    pub agent: PathBuf,
    /// The simulated API server.
    pub api_server: PathBuf,
    /// The operator's command-line program.
    pub cli: PathBuf,
}

impl Binaries {
    /// Finds all of them in one directory.
    pub fn find(directory: &Path) -> Result<Self, MissingBinary> {
        let find = |name, package| {
            let path = directory.join(name);
            let missing = || MissingBinary { name, package, directory: directory.display().to_string() };
            path.is_file().then_some(path).ok_or_else(missing)
        };
        Ok(Self {
            broker: find("sindri-broker", "sindri-broker")?,
            agent: find("sindri-agent", "sindri-agent")?,
            api_server: find("sindri-apiserver", "sindri-apiserver")?,
            cli: find("sindri", "sindri-cli")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_binary_is_named_with_the_command_that_builds_it() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["sindri-broker", "sindri-agent", "sindri-apiserver"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let message = Binaries::find(directory.path()).unwrap_err().to_string();
        assert!(message.starts_with("sindri is not in "), "{message}");
        assert!(message.ends_with("build it with `cargo build --release -p sindri-cli`"), "{message}");
    }
}
