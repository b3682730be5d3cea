//! Agents.

use sindri_model::wire::{Agent, AgentStatus};

use crate::output::{Cell, Column, Resource, Style};

impl Resource for Agent {
    const KIND: &'static str = "agent";

    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("NAME", |agent| Cell::text(&agent.name)),
            Column::new("CLUSTER", |agent| Cell::text(&agent.cluster_name)),
            Column::new("STATUS", |agent| match agent.status {
                AgentStatus::Active => Cell::text("active").styled(Style::Good),
                AgentStatus::Inactive => Cell::text("inactive").styled(Style::Warning),
            }),
            Column::new("LAST HEARTBEAT", |agent| Cell::last_time(agent.last_heartbeat)),
            Column::wide("API SERVER", |agent| match agent.k8s_reachable {
                Some(true) => Cell::text("reachable"),
                Some(false) => Cell::text("unreachable").styled(Style::Bad),
                None => Cell::text("-"),
            }),
            Column::wide("CREATED", |agent| Cell::time(agent.created_at)),
            Column::new("ID", |agent| Cell::text(agent.id)),
        ]
    }
}
