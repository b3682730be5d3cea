//! Generators.

use serde::Serialize;
use sindri_model::wire::Generator;

use super::details::{format_labels, nested_columns};
use crate::output::{Cell, Column, Resource, Style};

impl Resource for Generator {
    const KIND: &'static str = "generator";
    const NONE: &'static str = "the key can read no generator: sindri generator create NAME creates one";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |generator: &Self| Cell::text(&generator.name)),
            Column::new("STATUS", |generator: &Self| match generator.is_active {
                true => Cell::text("active").styled(Style::Good),
                false => Cell::text("inactive").styled(Style::Warning),
            }),
            Column::new("LAST REQUEST", |generator: &Self| Cell::last_time(generator.last_active_at)),
            Column::wide("CREATED", |generator: &Self| Cell::time(generator.created_at)),
            Column::wide("DESCRIPTION", |generator: &Self| Cell::optional(generator.description.as_ref())),
            Column::new("ID", |generator: &Self| Cell::text(generator.id)),
        ]
    }
}

/// A generator with its agents.
#[derive(Serialize)]
pub(crate) struct GeneratorDetails {
    #[serde(flatten)]
    pub generator: Generator,
    pub registered_agents: Vec<String>,
}

impl Resource for GeneratorDetails {
    const KIND: &'static str = Generator::KIND;

    fn name(&self) -> String {
        self.generator.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        let mut columns = nested_columns(|details: &Self| &details.generator);
        columns.push(Column::new("AGENTS", |details: &Self| format_labels(Some(&details.registered_agents))));
        columns
    }
}
