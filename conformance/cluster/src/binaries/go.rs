//! Go: whether it is there, and new enough.

use std::path::Path;
use std::process::{Command, Output};

use crate::error::ClusterError;
use crate::name::ProviderName;

use super::component::Component;

/// What the newest of the modules asks for: kwok's.
const NEEDED: (u32, u32) = (1, 26);
/// How one gets it.
const ADVICE: &str = "get it from https://go.dev/dl/";

/// The Go that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Go {
    /// As in `go1.26.8`.
    pub(super) version: String,
    /// As in `linux/amd64`.
    pub(super) target: String,
}

impl Go {
    /// Asks for it. Go may fetch a newer version of itself by itself, where a module asks for one.
    pub(super) fn find() -> Result<Self, ClusterError> {
        let module = Component::Kwok.module();
        let asked = ask(&module).map_err(|_| unavailable("Go is missing"))?;
        let answer = if asked.status.success() { asked } else { ask(Path::new("/")).unwrap_or(asked) };
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = text.lines().map(str::to_owned);
        let (version, system, machine) = (lines.next(), lines.next(), lines.next());
        match (version, system, machine) {
            (Some(version), Some(system), Some(machine)) => Self::new(version, &system, &machine),
            _ => Err(unavailable("`go env` does not tell its version")),
        }
    }

    fn new(version: String, system: &str, machine: &str) -> Result<Self, ClusterError> {
        if number(&version).is_some_and(|found| found < NEEDED) {
            return Err(unavailable(&format!("{version} is too old")));
        }
        Ok(Self { version, target: format!("{system}/{machine}") })
    }
}

fn ask(directory: &Path) -> std::io::Result<Output> {
    Command::new("go").args(["env", "GOVERSION", "GOOS", "GOARCH"]).current_dir(directory).env("GOWORK", "off").output()
}

fn unavailable(missing: &str) -> ClusterError {
    let (major, minor) = NEEDED;
    let missing = format!("{missing} (the control plane is built with Go {major}.{minor} or newer)");
    ClusterError::Unavailable { provider: ProviderName::Local, missing, advice: ADVICE.to_owned() }
}

/// Of `go1.26.8` or `go1.27rc1` the first two numbers; a Go that was built by hand calls itself `devel`.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.strip_prefix("go")?.split_once('.')?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    Some((major.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_go_that_is_too_old_is_refused_in_one_line_that_says_how_to_get_another() {
        let words = Go::new("go1.25.9".into(), "linux", "amd64").unwrap_err().to_string();
        assert_eq!(
            words,
            "local cannot run here: go1.25.9 is too old (the control plane is built with Go 1.26 or newer); \
             get it from https://go.dev/dl/"
        );
        for version in ["go1.26.0", "go1.27rc1", "go2.0", "devel +abc"] {
            assert_eq!(Go::new(version.into(), "linux", "amd64").unwrap().version, version);
        }
    }
}
