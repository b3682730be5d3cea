//! Content of the file with the contexts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::Context;
use crate::failure::Failure;
use crate::names::suggest;

/// Contexts by name, and the one that commands use.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextFile {
    /// Context that commands use without `--context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

impl ContextFile {
    /// Returns the context with this name.
    pub(crate) fn find(&self, name: &str) -> Result<&Context, Failure> {
        let missing = || {
            let suggestion = suggest(name, self.contexts.keys().map(String::as_str));
            Failure::Usage(format!("there is no context {name}{suggestion}; sindri context list shows all"))
        };
        self.contexts.get(name).ok_or_else(missing)
    }

    /// Returns the name of the requested context, or of the current one; `None` without either.
    pub(crate) fn select(&self, requested: Option<&str>) -> Result<Option<(&str, &Context)>, Failure> {
        // A variable of CI that is not set is empty.
        let requested = requested.filter(|name| !name.is_empty());
        let Some(name) = requested.or(self.current.as_deref()) else { return Ok(None) };
        let context = self.find(name)?;
        Ok(self.contexts.keys().find(|known| *known == name).map(|known| (known.as_str(), context)))
    }

    /// Returns true if a context has its key in the file.
    pub(super) fn has_key(&self) -> bool {
        self.contexts.values().any(|context| context.key.is_some())
    }
}
