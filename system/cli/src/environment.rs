//! The variables of the environment that flags do not read, read once at the start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables of the environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Reads the environment of the process.
    pub(crate) fn read() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the value of a variable; `None` if it is not set or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns true if a variable is set and not empty.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the directory of this program's files; `None` without a home directory.
    pub(crate) fn config_directory(&self) -> Option<PathBuf> {
        let base = self.get("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(self.get("HOME")?).join(".config")));
        base.map(|base| base.join("sindri"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment(variables.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    #[test]
    fn files_are_below_the_configuration_of_the_user() {
        let directory = |variables| environment(variables).config_directory();
        assert_eq!(directory(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]), Some("/c/sindri".into()));
        assert_eq!(directory(&[("XDG_CONFIG_HOME", ""), ("HOME", "/h")]), Some("/h/.config/sindri".into()));
        assert_eq!(directory(&[]), None);
    }
}
