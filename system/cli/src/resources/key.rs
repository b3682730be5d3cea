//! Keys without their secrets.

use sindri_model::wire::PakSummary;

use crate::output::{Cell, Column, Resource};

impl Resource for PakSummary {
    const KIND: &'static str = "key";

    fn name(&self) -> String {
        self.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("OWNER", |key: &Self| Cell::text(&key.name)),
            Column::new("ID", |key: &Self| Cell::text(key.id)),
        ]
    }
}
