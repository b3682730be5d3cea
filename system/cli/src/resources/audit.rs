//! Entries of the audit log.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use sindri_model::wire::AuditLog;

use crate::output::{Cell, Column, Resource};

/// An entry as people read it: with names in place of ids.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct AuditRow {
    /// The entry.
    pub(crate) entry: AuditLog,
    /// Names by id.
    #[serde(skip)]
    pub(crate) names: Arc<BTreeMap<String, String>>,
}

impl AuditRow {
    fn name_of<'a>(&'a self, id: &'a str) -> &'a str {
        self.names.get(id).map_or(id, String::as_str)
    }

    /// Returns the resource with its name, or its id if the name is not known.
    fn resource(&self) -> String {
        match &self.entry.resource_id {
            Some(id) => format!("{} {}", self.entry.resource_type, self.name_of(id)),
            None => self.entry.resource_type.clone(),
        }
    }

    /// Returns the details, with names in place of the ids that are known.
    fn details(&self) -> String {
        let Some(mut details) = self.entry.details.clone() else { return String::new() };
        for value in details.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
            if let Some(name) = value.as_str().and_then(|id| self.names.get(id)) {
                *value = Value::from(name.as_str());
            }
        }
        details.to_string()
    }
}

impl Resource for AuditRow {
    const KIND: &'static str = "audit";
    const NONE: &'static str = "there is no such entry";

    fn name(&self) -> String {
        self.entry.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("TIME", |row: &Self| Cell::time(row.entry.timestamp)),
            Column::new("ACTION", |row: &Self| Cell::text(&row.entry.action)),
            Column::new("ACTOR", |row: &Self| match &row.entry.actor_name {
                Some(name) => Cell::text(format!("{} {name}", row.entry.actor_type)),
                None => Cell::text(&row.entry.actor_type),
            }),
            Column::wide("ADDRESS", |row: &Self| Cell::optional(row.entry.ip_address.as_ref())),
            Column::wide("PROGRAM", |row: &Self| Cell::optional(row.entry.user_agent.as_ref())),
            Column::new("RESOURCE", |row: &Self| Cell::text(row.resource())),
            Column::new("DETAILS", |row: &Self| Cell::text(row.details())),
        ]
    }
}
