//! Agents.

use std::collections::BTreeMap;

use serde::Serialize;
use sindri_model::wire::{Agent, AgentStatus};

use super::details::{format_annotations, format_labels, nested_columns};
use crate::output::{Cell, Column, Resource, Style};

impl Resource for Agent {
    const KIND: &'static str = "agent";
    const NONE: &'static str = "the key can read no agent: sindri agent create NAME --cluster CLUSTER creates one";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |agent: &Self| Cell::text(&agent.name)),
            Column::new("CLUSTER", |agent: &Self| Cell::text(&agent.cluster_name)),
            Column::new("STATUS", |agent: &Self| match agent.status {
                AgentStatus::Active => Cell::text("active").styled(Style::Good),
                AgentStatus::Inactive => Cell::text("inactive").styled(Style::Warning),
            }),
            Column::new("LAST HEARTBEAT", |agent: &Self| Cell::last_time(agent.last_heartbeat)),
            Column::wide("API SERVER", |agent: &Self| match agent.k8s_reachable {
                Some(true) => Cell::text("reachable"),
                Some(false) => Cell::text("unreachable").styled(Style::Bad),
                None => Cell::text("-"),
            }),
            Column::wide("CREATED", |agent: &Self| Cell::time(agent.created_at)),
            Column::new("ID", |agent: &Self| Cell::text(agent.id)),
        ]
    }
}

/// An agent with its labels and annotations, as far as the key may read them.
#[derive(Serialize)]
pub(crate) struct AgentDetails {
    #[serde(flatten)]
    pub agent: Agent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Resource for AgentDetails {
    const KIND: &'static str = Agent::KIND;

    fn name(&self) -> String {
        self.agent.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        let mut columns = nested_columns(|details: &Self| &details.agent);
        columns.push(Column::new("LABELS", |details: &Self| format_labels(details.labels.as_deref())));
        columns.push(Column::new("ANNOTATIONS", |details: &Self| format_annotations(details.annotations.as_ref())));
        columns
    }
}
