//! Contexts, without their keys.

use serde::Serialize;

use crate::contexts::{Context, ContextFile};
use crate::output::{Cell, Column, Resource};

/// A context as it is shown.
#[derive(Serialize)]
pub(crate) struct ContextRow {
    name: String,
    is_current: bool,
    broker: String,
    /// Kind of the credential: `key`, `key file …` or `login`.
    credential: String,
    broker_ca_file: Option<String>,
}

impl ContextRow {
    /// Creates the row of a context.
    pub(crate) fn new(file: &ContextFile, name: &str, context: &Context) -> Self {
        Self {
            name: name.to_owned(),
            is_current: file.current.as_deref() == Some(name),
            broker: context.broker.clone(),
            credential: context.describe_credential(),
            broker_ca_file: context.broker_ca_file.as_ref().map(|path| path.display().to_string()),
        }
    }
}

impl Resource for ContextRow {
    const KIND: &'static str = "context";
    const NONE: &'static str = "there is no context yet: sindri context set NAME --broker URL creates one";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |context: &Self| Cell::text(&context.name)),
            Column::new("CURRENT", |context: &Self| Cell::text(if context.is_current { "yes" } else { "-" })),
            Column::new("BROKER", |context: &Self| Cell::text(&context.broker)),
            Column::new("CREDENTIAL", |context: &Self| Cell::text(&context.credential)),
            Column::wide("CERTIFICATE AUTHORITIES", |context: &Self| Cell::optional(context.broker_ca_file.as_ref())),
        ]
    }
}
