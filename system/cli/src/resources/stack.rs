//! Stacks.

use sindri_model::wire::Stack;

use crate::output::{Cell, Column, Resource};

impl Resource for Stack {
    const KIND: &'static str = "stack";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |stack| Cell::text(&stack.name)),
            Column::wide("DESCRIPTION", |stack| Cell::optional(stack.description.as_ref())),
            Column::wide("GENERATOR", |stack| Cell::text(stack.generator_id)),
            Column::new("CREATED", |stack| Cell::time(stack.created_at)),
            Column::new("ID", |stack| Cell::text(stack.id)),
        ]
    }
}
