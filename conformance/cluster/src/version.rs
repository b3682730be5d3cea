//! The versions of Kubernetes that are pinned, each with a module file of its own.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Every pinned version; the first is what one gets without asking.
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
    /// What its binaries call themselves.
    pub fn release(self) -> &'static str {
        match self {
            Self::V1_35 => "v1.35.4",
            Self::V1_36 => "v1.36.4",
        }
    }

    /// The module file that pins it; its checksums are in the file of the same name that ends with `sum`.
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
        let fits = |version: &Version| plain == version.to_string() || version.release() == format!("v{plain}");
        ALL.into_iter().find(fits).ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_by_its_short_and_its_long_name() {
        for text in ["1.36", "v1.36", "1.36.4", "v1.36.4"] {
            assert_eq!(text.parse(), Ok(Version::V1_36));
        }
        let words = "1.34".parse::<Version>().unwrap_err().to_string();
        assert_eq!(words, "Kubernetes \"1.34\" is not pinned here; there are 1.35, 1.36");
    }

    #[test]
    fn the_module_files_pin_what_the_versions_say() {
        for version in ALL {
            let file = crate::home::project().join("conformance/controlplane").join(version.module_file());
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.contains(&format!("\nrequire k8s.io/kubernetes {}\n", version.release())), "{version}");
        }
    }
}
