//! `sindri status`: status of each stack on each agent, derived from revisions, targets and events. For one stack also
//! its conditions.
//!
//! It needs the administrator's key to read the target state of every agent. Reading it does not count as a poll by the
//! agent.

use std::collections::BTreeMap;

use sindri_client::{Client, TargetStateResponse};
use sindri_model::wire::{Agent, AgentEvent, DeploymentObject, EventStatus};
use sindri_model::{RevisionId, StackId};

use crate::commands::conditions;
use crate::failure::Failure;
use crate::names;
use crate::output::print;
use crate::table::table;

type Row = [String; 4];

pub(crate) async fn run(client: &Client, only: Option<&str>) -> Result<(), Failure> {
    let stacks = match only {
        Some(wanted) => vec![names::find_stack(client, wanted).await?],
        None => client.stacks().await?,
    };
    let mut agents = Vec::new();
    for agent in client.agents().await? {
        agents.push(AgentState::read(client, agent).await?);
    }
    let mut rows = Vec::new();
    for stack in &stacks {
        let newest = client.revisions(stack.id).await?.pop();
        let mut of_stack = Vec::new();
        for agent in &agents {
            of_stack.extend(agent.row(stack.id, &stack.name, newest.as_ref()));
        }
        if of_stack.is_empty() {
            of_stack.push([stack.name.clone(), sequence(newest.as_ref()), "-".to_owned(), "not targeted".to_owned()]);
        }
        rows.extend(of_stack);
    }
    if only.is_none() {
        let living: Vec<StackId> = stacks.iter().map(|stack| stack.id).collect();
        rows.extend(agents.iter().flat_map(|agent| agent.rows_of_deleted(&living)));
    }
    let mut text = table(["STACK", "SEQUENCE", "AGENT", "STATUS"], &rows);
    if only.is_some() {
        for stack in &stacks {
            let conditions = conditions::describe(client, &stack.name, stack.id).await?;
            text.extend(conditions.iter().map(|conditions| format!("\n{conditions}")));
        }
    }
    print(&text)
}

fn sequence(revision: Option<&DeploymentObject>) -> String {
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
        let objects = match client.target_state(agent.id, None).await? {
            TargetStateResponse::Changed { objects, .. } => objects,
            TargetStateResponse::Unchanged { .. } => Vec::new(),
        };
        let target_state = objects.into_iter().map(|object| (object.stack_id, object)).collect();
        let targeted = client.targets(agent.id).await?.into_iter().map(|target| target.stack_id).collect();
        // Events are sorted by time, so the last one per revision stays.
        let events = client.events(agent.id).await?;
        let last_events = events.into_iter().map(|event| (event.deployment_object_id, event)).collect();
        Ok(Self { agent, target_state, targeted, last_events })
    }

    /// Returns the row of a stack that this agent has in its target state or targets.
    fn row(&self, stack: StackId, name: &str, newest: Option<&DeploymentObject>) -> Option<Row> {
        let status = match self.target_state.get(&stack) {
            Some(object) => self.outcome(object),
            None if self.targeted.contains(&stack) => self.status_without_instruction(newest),
            None => return None,
        };
        Some([name.to_owned(), sequence(newest), self.agent.name.clone(), status])
    }

    /// Returns the rows of deleted stacks, by id: their names may be in use again.
    fn rows_of_deleted(&self, living: &[StackId]) -> Vec<Row> {
        let deleted = self.target_state.values().filter(|object| !living.contains(&object.stack_id));
        let row = |object: &DeploymentObject| {
            let name = format!("(deleted {})", object.stack_id);
            [name, object.sequence_id.to_string(), self.agent.name.clone(), self.outcome(object)]
        };
        deleted.map(row).collect()
    }

    fn outcome(&self, object: &DeploymentObject) -> String {
        let reported = self.last_events.get(&object.id).map(|event| (&event.status, event.message.as_deref()));
        match (reported, object.is_deletion_marker) {
            (Some((EventStatus::Failure, message)), _) => format!("failed: {}", message.unwrap_or("no reason given")),
            (_, true) => "removing".to_owned(),
            (Some((EventStatus::Success, _)), false) => "applied".to_owned(),
            (None | Some((EventStatus::Other(_), _)), false) => "pending".to_owned(),
        }
    }

    /// Returns the status of a target without an entry in the target state: no revision yet, or a confirmed removal.
    fn status_without_instruction(&self, newest: Option<&DeploymentObject>) -> String {
        match newest {
            Some(_) => "removed".to_owned(),
            None => "no revision yet".to_owned(),
        }
    }
}
