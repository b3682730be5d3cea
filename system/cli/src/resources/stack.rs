//! Stacks.

use std::collections::BTreeMap;

use serde::Serialize;
use sindri_model::wire::Stack;

use super::details::{format_annotations, format_labels, nested_columns};
use crate::output::{Cell, Column, Resource};

impl Resource for Stack {
    const KIND: &'static str = "stack";
    const NONE: &'static str = "the key can read no stack: sindri apply NAME --file FILE --create creates one";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |stack: &Self| Cell::text(&stack.name)),
            Column::wide("DESCRIPTION", |stack: &Self| Cell::optional(stack.description.as_ref())),
            Column::wide("GENERATOR", |stack: &Self| Cell::text(stack.generator_id)),
            Column::new("CREATED", |stack: &Self| Cell::time(stack.created_at)),
            Column::new("ID", |stack: &Self| Cell::text(stack.id)),
        ]
    }
}

/// A stack with the name of its generator, its labels and annotations.
#[derive(Serialize)]
pub(crate) struct StackDetails {
    #[serde(flatten)]
    pub stack: Stack,
    pub generator: String,
    pub labels: Vec<String>,
    pub annotations: BTreeMap<String, String>,
}

impl Resource for StackDetails {
    const KIND: &'static str = Stack::KIND;

    fn name(&self) -> String {
        self.stack.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        let mut columns = nested_columns(|details: &Self| &details.stack);
        columns.push(Column::new("GENERATOR NAME", |details: &Self| Cell::text(&details.generator)));
        columns.push(Column::new("LABELS", |details: &Self| format_labels(Some(&details.labels))));
        columns.push(Column::new("ANNOTATIONS", |details: &Self| format_annotations(Some(&details.annotations))));
        columns
    }
}
