//! `sindri events`: events of one agent, or of all agents about one stack.

use std::collections::BTreeMap;

use serde::Serialize;
use sindri_client::Client;
use sindri_model::wire::{Agent, AgentEvent, DeploymentObject, EventStatus, Stack};
use sindri_model::{RevisionId, Sequence};

use crate::failure::Failure;
use crate::output::{Cell, Column, Resource};
use crate::session::Session;

/// An event with the names of its agent and stack.
#[derive(Serialize)]
struct EventRow {
    #[serde(flatten)]
    event: AgentEvent,
    agent: String,
    stack: String,
    sequence_id: Sequence,
    outcome: String,
}

impl Resource for EventRow {
    const KIND: &'static str = "event";

    fn name(&self) -> String {
        self.event.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("TIME", |row: &Self| Cell::time(row.event.created_at)),
            Column::new("AGENT", |row: &Self| Cell::text(&row.agent)),
            Column::new("STACK", |row: &Self| Cell::text(&row.stack)),
            Column::new("SEQUENCE", |row: &Self| Cell::text(row.sequence_id)),
            Column::new("OUTCOME", |row: &Self| Cell::text(&row.outcome)),
            Column::new("MESSAGE", |row: &Self| Cell::text(row.event.message.as_deref().unwrap_or_default())),
        ]
    }
}

pub(crate) async fn run(session: &Session, subject: &str) -> Result<(), Failure> {
    let client = &session.client;
    let (agents, stacks) = (client.list_agents().await?, client.list_stacks().await?);
    let is_agent = |agent: &&Agent| agent.name == subject || agent.id.to_string() == subject;
    let is_stack = |stack: &&Stack| stack.name == subject || stack.id.to_string() == subject;
    let named_agents: Vec<&Agent> = agents.iter().filter(is_agent).collect();
    let stack = stacks.iter().find(is_stack);
    let reporters = match (named_agents.is_empty(), stack) {
        (false, _) => named_agents,
        (true, Some(_)) => agents.iter().collect(),
        (true, None) => return Err(Failure::Usage(format!("there is no agent and no stack {subject}"))),
    };
    let stack_filter = if reporters.iter().any(is_agent) { None } else { stack };
    session.output.print_list(&list_events(client, &reporters, stack_filter, &stacks).await?)
}

async fn list_events(
    client: &Client,
    reporters: &[&Agent],
    stack_filter: Option<&Stack>,
    stacks: &[Stack],
) -> Result<Vec<EventRow>, Failure> {
    let mut revisions: BTreeMap<RevisionId, DeploymentObject> = BTreeMap::new();
    let mut rows = Vec::new();
    for agent in reporters {
        for event in client.list_events(agent.id).await? {
            if !revisions.contains_key(&event.deployment_object_id) {
                let revision = client.get_revision(event.deployment_object_id).await?;
                revisions.insert(revision.id, revision);
            }
            let revision = &revisions[&event.deployment_object_id];
            if stack_filter.is_none_or(|stack| stack.id == revision.stack_id) {
                rows.push(create_row(agent, event, revision, stacks));
            }
        }
    }
    rows.sort_by_key(|row: &EventRow| row.event.created_at);
    Ok(rows)
}

fn create_row(agent: &Agent, event: AgentEvent, revision: &DeploymentObject, stacks: &[Stack]) -> EventRow {
    let stack = stacks.iter().find(|stack| stack.id == revision.stack_id);
    let outcome = match (&event.status, revision.is_deletion_marker) {
        (EventStatus::Success, false) => "applied",
        (EventStatus::Success, true) => "removed",
        (EventStatus::Failure, _) => "failed",
        (EventStatus::Other(status), _) => status,
    };
    EventRow {
        agent: agent.name.clone(),
        stack: stack.map_or_else(|| revision.stack_id.to_string(), |stack| stack.name.clone()),
        sequence_id: revision.sequence_id,
        outcome: outcome.to_owned(),
        event,
    }
}
