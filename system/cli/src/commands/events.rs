//! `sindri events`: events of one agent, or of all agents about one stack.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sindri_client::Client;
use sindri_model::RevisionId;
use sindri_model::wire::{Agent, AgentEvent, DeploymentObject, EventStatus, Stack};

use crate::failure::Failure;
use crate::output::print;
use crate::table::table;

pub(crate) async fn run(client: &Client, subject: &str) -> Result<(), Failure> {
    let (agents, stacks) = (client.agents().await?, client.stacks().await?);
    let is_agent = |agent: &&Agent| agent.name == subject || agent.id.to_string() == subject;
    let is_stack = |stack: &&Stack| stack.name == subject || stack.id.to_string() == subject;
    let named: Vec<&Agent> = agents.iter().filter(is_agent).collect();
    let stack = stacks.iter().find(is_stack);
    let reporters = match (named.is_empty(), stack) {
        (false, _) => named,
        (true, Some(_)) => agents.iter().collect(),
        (true, None) => return Err(Failure::Usage(format!("there is no agent and no stack {subject}"))),
    };
    let only = if reporters.iter().any(is_agent) { None } else { stack };
    print(&list(client, &reporters, only, &stacks).await?)
}

async fn list(
    client: &Client,
    reporters: &[&Agent],
    only: Option<&Stack>,
    stacks: &[Stack],
) -> Result<String, Failure> {
    let mut revisions: BTreeMap<RevisionId, DeploymentObject> = BTreeMap::new();
    let mut rows = Vec::new();
    for agent in reporters {
        for event in client.events(agent.id).await? {
            if !revisions.contains_key(&event.deployment_object_id) {
                let revision = client.revision(event.deployment_object_id).await?;
                revisions.insert(revision.id, revision);
            }
            let revision = &revisions[&event.deployment_object_id];
            if only.is_none_or(|stack| stack.id == revision.stack_id) {
                rows.push((event.created_at, row(agent, &event, revision, stacks)));
            }
        }
    }
    rows.sort_by_key(|(at, _): &(Timestamp, _)| *at);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(table(["TIME", "AGENT", "STACK", "SEQUENCE", "OUTCOME", "MESSAGE"], &rows))
}

fn row(agent: &Agent, event: &AgentEvent, revision: &DeploymentObject, stacks: &[Stack]) -> [String; 6] {
    let stack = stacks.iter().find(|stack| stack.id == revision.stack_id);
    let outcome = match (&event.status, revision.is_deletion_marker) {
        (EventStatus::Success, false) => "applied",
        (EventStatus::Success, true) => "removed",
        (EventStatus::Failure, _) => "failed",
        (EventStatus::Other(word), _) => word,
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
