//! Administrators.

use sindri_model::wire::Admin;

use crate::output::{Cell, Column, Resource};

impl Resource for Admin {
    const KIND: &'static str = "admin";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |admin: &Self| Cell::text(&admin.name)),
            Column::new("ROLE", |admin: &Self| Cell::text(admin.role.as_str())),
            Column::new("KEY EXPIRES", |admin: &Self| match admin.key_expires_at {
                Some(time) => Cell::text(time),
                None => Cell::text("never"),
            }),
            Column::new("ID", |admin: &Self| Cell::text(admin.id)),
        ]
    }
}
