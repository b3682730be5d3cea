//! `sindri events`: events of one agent, or of all agents about one stack.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sindri_client::Client;
use sindri_model::RevisionId;
use sindri_model::wire::{Agent, AgentEvent, DeploymentObject, EventStatus, Stack};

use crate::failure::Failure;
use crate::output::print;
use crate::table::format_table;

pub(crate) async fn run(client: &Client, subject: &str) -> Result<(), Failure> {
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
    print(&list_events(client, &reporters, stack_filter, &stacks).await?)
}

async fn list_events(
    client: &Client,
    reporters: &[&Agent],
    stack_filter: Option<&Stack>,
    stacks: &[Stack],
) -> Result<String, Failure> {
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
                rows.push((event.created_at, format_row(agent, &event, revision, stacks)));
            }
        }
    }
    rows.sort_by_key(|(created_at, _): &(Timestamp, _)| *created_at);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(format_table(["TIME", "AGENT", "STACK", "SEQUENCE", "OUTCOME", "MESSAGE"], &rows))
}

fn format_row(agent: &Agent, event: &AgentEvent, revision: &DeploymentObject, stacks: &[Stack]) -> [String; 6] {
    let stack = stacks.iter().find(|stack| stack.id == revision.stack_id);
    let outcome = match (&event.status, revision.is_deletion_marker) {
        (EventStatus::Success, false) => "applied",
        (EventStatus::Success, true) => "removed",
        (EventStatus::Failure, _) => "failed",
        (EventStatus::Other(status), _) => status,
    };
    [
        event.created_at.to_string(),
        agent.name.clone(),
        stack.map_or_else(|| revision.stack_id.to_string(), |stack| stack.name.clone()),
        revision.sequence_id.to_string(),
        outcome.to_owned(),
        event.message.clone().unwrap_or_default(),
    ]
}
