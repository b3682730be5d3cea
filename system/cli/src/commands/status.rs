//! `sindri status`: each stack on each agent, from what was submitted, targeted and reported. Of one stack also its
//! conditions, as far as agents report any.
//!
//! It needs the administrator's key: it looks at what every agent is told, which makes no agent receive it.

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
        Some(wanted) => vec![names::stack(client, wanted).await?],
        None => client.stacks().await?,
    };
    let mut reports = Vec::new();
    for agent in client.agents().await? {
        reports.push(Report::read(client, agent).await?);
    }
    let mut rows = Vec::new();
    for stack in &stacks {
        let newest = client.revisions(stack.id).await?.pop();
        let mut of_stack = Vec::new();
        for report in &reports {
            of_stack.extend(report.row(stack.id, &stack.name, newest.as_ref()));
        }
        if of_stack.is_empty() {
            of_stack.push([stack.name.clone(), sequence(newest.as_ref()), "-".to_owned(), "not targeted".to_owned()]);
        }
        rows.extend(of_stack);
    }
    if only.is_none() {
        let living: Vec<StackId> = stacks.iter().map(|stack| stack.id).collect();
        rows.extend(reports.iter().flat_map(|report| report.rows_of_deleted(&living)));
    }
    let mut text = table(["STACK", "SEQUENCE", "AGENT", "STATUS"], &rows);
    if only.is_some() {
        for stack in &stacks {
            let conditions = conditions::of_stack(client, &stack.name, stack.id).await?;
            text.extend(conditions.iter().map(|conditions| format!("\n{conditions}")));
        }
    }
    print(&text)
}

fn sequence(revision: Option<&DeploymentObject>) -> String {
    revision.map_or_else(|| "-".to_owned(), |revision| revision.sequence_id.to_string())
}

/// What one agent is told, and what it last said about each revision.
struct Report {
    agent: Agent,
    told: BTreeMap<StackId, DeploymentObject>,
    targeted: Vec<StackId>,
    said: BTreeMap<RevisionId, AgentEvent>,
}

impl Report {
    async fn read(client: &Client, agent: Agent) -> Result<Self, Failure> {
        let told = match client.target_state(agent.id, None).await? {
            TargetStateResponse::Changed { objects, .. } => objects,
            TargetStateResponse::Unchanged { .. } => Vec::new(),
        };
        let told = told.into_iter().map(|object| (object.stack_id, object)).collect();
        let targeted = client.targets(agent.id).await?.into_iter().map(|target| target.stack_id).collect();
        // Oldest first: the last one stays.
        let events = client.events(agent.id).await?;
        let said = events.into_iter().map(|event| (event.deployment_object_id, event)).collect();
        Ok(Self { agent, told, targeted, said })
    }

    /// How a stack is on this agent, if it has anything to do with it.
    fn row(&self, stack: StackId, name: &str, newest: Option<&DeploymentObject>) -> Option<Row> {
        let status = match self.told.get(&stack) {
            Some(object) => self.outcome(object),
            None if self.targeted.contains(&stack) => self.untold(newest),
            None => return None,
        };
        Some([name.to_owned(), sequence(newest), self.agent.name.clone(), status])
    }

    /// Removals of stacks that are deleted, whose names are free again.
    fn rows_of_deleted(&self, living: &[StackId]) -> Vec<Row> {
        let deleted = self.told.values().filter(|object| !living.contains(&object.stack_id));
        let row = |object: &DeploymentObject| {
            let name = format!("(deleted {})", object.stack_id);
            [name, object.sequence_id.to_string(), self.agent.name.clone(), self.outcome(object)]
        };
        deleted.map(row).collect()
    }

    fn outcome(&self, object: &DeploymentObject) -> String {
        let said = self.said.get(&object.id).map(|event| (&event.status, event.message.as_deref()));
        match (said, object.is_deletion_marker) {
            (Some((EventStatus::Failure, message)), _) => format!("failed: {}", message.unwrap_or("no reason given")),
            (_, true) => "removing".to_owned(),
            (Some((EventStatus::Success, _)), false) => "applied".to_owned(),
            (None | Some((EventStatus::Other(_), _)), false) => "pending".to_owned(),
        }
    }

    /// Targeted, and nothing to do: there is no revision yet, or the marker was carried out.
    fn untold(&self, newest: Option<&DeploymentObject>) -> String {
        match newest {
            Some(_) => "removed".to_owned(),
            None => "no revision yet".to_owned(),
        }
    }
}
