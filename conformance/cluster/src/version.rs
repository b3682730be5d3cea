//! The pinned versions of Kubernetes, each with a Go module file of its own.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// All pinned versions; the first is the default.
pub const ALL: [Version; 2] = [Version::V1_35, Version::V1_36];

/// A pinned version of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.35
    #[default]
    V1_35,
    /// 1.36
    V1_36,
}

/// A version that is not pinned.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("Kubernetes {0:?} is not pinned here; there are {versions}", versions = ALL.map(|one| one.to_string()).join(", "))]
pub struct UnknownVersion(String);

impl Version {
    /// Release that its binaries report.
    pub fn release(self) -> &'static str {
        match self {
            Self::V1_35 => "v1.35.4",
            Self::V1_36 => "v1.36.4",
        }
    }

    /// Go module file that pins it. The checksums are in the file with the same name and the suffix `sum`.
    pub(crate) fn module_file(self) -> &'static str {
        match self {
            Self::V1_35 => "go.mod",
            Self::V1_36 => "v1.36.mod",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
        })
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.strip_prefix('v').unwrap_or(text);
        let matches = |version: &Version| plain == version.to_string() || version.release() == format!("v{plain}");
        ALL.into_iter().find(matches).ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_parsed_from_its_short_and_its_full_number() {
        for text in ["1.36", "v1.36", "1.36.4", "v1.36.4"] {
            assert_eq!(text.parse(), Ok(Version::V1_36));
        }
        let message = "1.34".parse::<Version>().unwrap_err().to_string();
        assert_eq!(message, "Kubernetes \"1.34\" is not pinned here; there are 1.35, 1.36");
    }

    #[test]
    fn the_module_files_pin_the_releases() {
        for version in ALL {
            let file = crate::home::project().join("conformance/controlplane").join(version.module_file());
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(&format!("\nrequire k8s.io/kubernetes {}\n", version.release())), "{version}");
        }
    }
}
