//! Entries of the audit log.

use sindri_model::wire::AuditLog;

use crate::output::{Cell, Column, Resource};

impl Resource for AuditLog {
    const KIND: &'static str = "audit";

    fn name(&self) -> String {
        self.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("TIME", |entry: &Self| Cell::time(entry.timestamp)),
            Column::new("ACTION", |entry: &Self| Cell::text(&entry.action)),
            Column::new("ACTOR", |entry: &Self| match &entry.actor_name {
                Some(name) => Cell::text(format!("{} {name}", entry.actor_type)),
                None => Cell::text(&entry.actor_type),
            }),
            Column::wide("ADDRESS", |entry: &Self| Cell::optional(entry.ip_address.as_ref())),
            Column::wide("PROGRAM", |entry: &Self| Cell::optional(entry.user_agent.as_ref())),
            Column::new("RESOURCE", |entry: &Self| match &entry.resource_id {
                Some(id) => Cell::text(format!("{} {id}", entry.resource_type)),
                None => Cell::text(&entry.resource_type),
            }),
            Column::new("DETAILS", |entry: &Self| {
                Cell::text(entry.details.as_ref().map(ToString::to_string).unwrap_or_default())
            }),
        ]
    }
}
