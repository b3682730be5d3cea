//! Finds Go and checks its version.

use std::path::Path;
use std::process::{Command, Output};

use crate::error::ClusterError;
use crate::name::ProviderName;

use super::component::Component;

/// Minimum version: that of kwok's module.
const MINIMUM: (u32, u32) = (1, 26);
/// Advice if it is missing.
const ADVICE: &str = "get it from https://go.dev/dl/";

/// The installed Go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Go {
    /// Version, such as `go1.26.8`.
    pub(super) version: String,
    /// Platform, such as `linux/amd64`.
    pub(super) target: String,
}

impl Go {
    /// Runs `go env`. Go may download a newer version of itself if a module requires one.
    pub(super) fn find() -> Result<Self, ClusterError> {
        let module = Component::Kwok.module();
        let output = run_go_env(&module).map_err(|_| unavailable("Go is missing"))?;
        let output = if output.status.success() { output } else { run_go_env(Path::new("/")).unwrap_or(output) };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().map(str::to_owned);
        let (version, system, machine) = (lines.next(), lines.next(), lines.next());
        match (version, system, machine) {
            (Some(version), Some(system), Some(machine)) => Self::new(version, &system, &machine),
            _ => Err(unavailable("`go env` does not print its version")),
        }
    }

    fn new(version: String, system: &str, machine: &str) -> Result<Self, ClusterError> {
        if parse_version(&version).is_some_and(|found| found < MINIMUM) {
            return Err(unavailable(&format!("{version} is too old")));
        }
        Ok(Self { version, target: format!("{system}/{machine}") })
    }
}

fn run_go_env(directory: &Path) -> std::io::Result<Output> {
    Command::new("go").args(["env", "GOVERSION", "GOOS", "GOARCH"]).current_dir(directory).env("GOWORK", "off").output()
}

fn unavailable(missing: &str) -> ClusterError {
    let (major, minor) = MINIMUM;
    let missing = format!("{missing} (the control plane is built with Go {major}.{minor} or newer)");
    ClusterError::Unavailable { provider: ProviderName::Local, missing, advice: ADVICE.to_owned() }
}

/// Parses the first two numbers of `go1.26.8` or `go1.27rc1`; a development build has the version `devel`.
fn parse_version(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.strip_prefix("go")?.split_once('.')?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_go_that_is_too_old_is_rejected_in_one_line_with_advice() {
        let message = Go::new("go1.25.9".into(), "linux", "amd64").unwrap_err().to_string();
        assert_eq!(
            message,
            "local cannot run here: go1.25.9 is too old (the control plane is built with Go 1.26 or newer); \
             get it from https://go.dev/dl/"
        );
        for version in ["go1.26.0", "go1.27rc1", "go2.0", "devel +abc"] {
            assert_eq!(Go::new(version.into(), "linux", "amd64").unwrap().version, version);
        }
    }
}
