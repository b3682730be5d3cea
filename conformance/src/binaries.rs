//! Finds the binaries of the system: next to the program that runs, where one build puts them all.
//!
//! Left out on purpose: a search in `PATH`, which would test whatever happens to be installed.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A binary that is not there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} is not in {directory}: build it with `cargo build --release -p {package}`")]
pub struct MissingBinary {
    name: &'static str,
    package: &'static str,
    directory: String,
}

/// Where the binaries are.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The broker.
    pub broker: PathBuf,
    /// The agent.
    pub agent: PathBuf,
    /// The simulated API server.
    pub api_server: PathBuf,
    /// What an operator types.
    pub cli: PathBuf,
}

impl Binaries {
    /// Looks for all of them in one directory.
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
    fn a_missing_binary_is_named_with_the_command_that_makes_it() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["sindri-broker", "sindri-agent", "sindri-apiserver"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let words = Binaries::find(directory.path()).unwrap_err().to_string();
        assert!(words.starts_with("sindri is not in "), "{words}");
        assert!(words.ends_with("build it with `cargo build --release -p sindri-cli`"), "{words}");
    }
}
