//! `sindri status`: status of each stack on each agent, derived from revisions, targets and events. For one stack also
//! its conditions.
//!
//! It needs the administrator's key to read the target state of every agent. Reading it does not count as a poll by the
//! agent.

use std::collections::BTreeMap;

use serde::Serialize;
use sindri_client::{Client, TargetStateResponse};
use sindri_model::wire::{Agent, AgentEvent, DeploymentObject, EventStatus};
use sindri_model::{RevisionId, StackId};

use crate::commands::conditions;
use crate::failure::Failure;
use crate::names;
use crate::output::{Cell, Column, Resource, full_name};
use crate::session::Session;

/// Status of a stack on one agent.
#[derive(Serialize)]
struct Row {
    stack: String,
    sequence: String,
    agent: String,
    status: String,
}

impl Resource for Row {
    const KIND: &'static str = "stack";

    fn name(&self) -> String {
        self.stack.clone()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("STACK", |row: &Self| Cell::text(&row.stack)),
            Column::new("SEQUENCE", |row: &Self| Cell::text(&row.sequence)),
            Column::new("AGENT", |row: &Self| Cell::text(&row.agent)),
            Column::new("STATUS", |row: &Self| Cell::text(&row.status)),
        ]
    }
}

pub(crate) async fn run(session: &Session, requested: Option<&str>) -> Result<(), Failure> {
    let client = &session.client;
    let stacks = match requested {
        Some(name) => vec![names::find_stack(client, name).await?],
        None => client.list_stacks().await?,
    };
    let mut agents = Vec::new();
    for agent in client.list_agents().await? {
        agents.push(AgentState::read(client, agent).await?);
    }
    let mut rows = Vec::new();
    for stack in &stacks {
        let newest = client.get_newest_revision(stack.id).await?;
        let mut stack_rows = Vec::new();
        for agent in &agents {
            stack_rows.extend(agent.format_row(stack.id, &stack.name, newest.as_ref()));
        }
        if stack_rows.is_empty() {
            stack_rows.push(Row {
                stack: stack.name.clone(),
                sequence: format_sequence(newest.as_ref()),
                agent: "-".to_owned(),
                status: "not targeted".to_owned(),
            });
        }
        rows.extend(stack_rows);
    }
    if requested.is_none() {
        let existing: Vec<StackId> = stacks.iter().map(|stack| stack.id).collect();
        rows.extend(agents.iter().flat_map(|agent| agent.format_deleted_stacks(&existing)));
    }
    let mut text = session.output.format_table(&rows);
    if requested.is_some() {
        for stack in &stacks {
            let conditions = conditions::describe(session, &stack.name, stack.id).await?;
            text.extend(conditions.iter().map(|conditions| format!("\n{conditions}")));
        }
    }
    let names = || rows.iter().map(full_name).collect();
    session.output.print_document(&rows, names, || text)
}

fn format_sequence(revision: Option<&DeploymentObject>) -> String {
    revision.map_or_else(|| "-".to_owned(), |revision| revision.sequence_id.to_string())
}

/// Target state of one agent, and its last event per revision.
struct AgentState {
    agent: Agent,
    target_state: BTreeMap<StackId, DeploymentObject>,
    targeted: Vec<StackId>,
    last_events: BTreeMap<RevisionId, AgentEvent>,
}

impl AgentState {
    async fn read(client: &Client, agent: Agent) -> Result<Self, Failure> {
        let objects = match client.get_target_state(agent.id, None).await? {
            TargetStateResponse::Changed { objects, .. } => objects,
            TargetStateResponse::Unchanged { .. } => Vec::new(),
        };
        let target_state = objects.into_iter().map(|object| (object.stack_id, object)).collect();
        let targeted = client.list_targets(agent.id).await?.into_iter().map(|target| target.stack_id).collect();
        // Events are sorted by time, so the last one per revision stays.
        let events = client.list_events(agent.id).await?;
        let last_events = events.into_iter().map(|event| (event.deployment_object_id, event)).collect();
        Ok(Self { agent, target_state, targeted, last_events })
    }

    /// Formats the row of a stack; `None` if it is neither in the agent's target state nor among its targets.
    fn format_row(&self, stack: StackId, name: &str, newest: Option<&DeploymentObject>) -> Option<Row> {
        let status = match self.target_state.get(&stack) {
            Some(object) => self.describe_outcome(object),
            None if self.targeted.contains(&stack) => self.describe_missing_entry(newest),
            None => return None,
        };
        Some(Row { stack: name.to_owned(), sequence: format_sequence(newest), agent: self.agent.name.clone(), status })
    }

    /// Formats the rows of deleted stacks. They are identified by id, because another stack may have the name now.
    fn format_deleted_stacks(&self, existing: &[StackId]) -> Vec<Row> {
        let deleted = self.target_state.values().filter(|object| !existing.contains(&object.stack_id));
        let format_row = |object: &DeploymentObject| {
            let (stack, sequence) = (format!("(deleted {})", object.stack_id), object.sequence_id.to_string());
            Row { stack, sequence, agent: self.agent.name.clone(), status: self.describe_outcome(object) }
        };
        deleted.map(format_row).collect()
    }

    fn describe_outcome(&self, object: &DeploymentObject) -> String {
        let reported = self.last_events.get(&object.id).map(|event| (&event.status, event.message.as_deref()));
        match (reported, object.is_deletion_marker) {
            (Some((EventStatus::Failure, message)), _) => {
                format!("failed: {}", message.unwrap_or("the agent gave no reason"))
            }
            (_, true) => "removing".to_owned(),
            (Some((EventStatus::Success, _)), false) => "applied".to_owned(),
            (None | Some((EventStatus::Other(_), _)), false) => "pending".to_owned(),
        }
    }

    /// Returns the status of a target without an entry in the target state: no revision yet, or a confirmed removal.
    fn describe_missing_entry(&self, newest: Option<&DeploymentObject>) -> String {
        match newest {
            Some(_) => "removed".to_owned(),
            None => "no revision yet".to_owned(),
        }
    }
}
