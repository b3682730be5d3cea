//! `sindri approvals`: plans that agents hold until they are approved or rejected.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use sindri_model::text::{to_printable, to_printable_lines};
use sindri_model::wire::{Approval, ApprovalState};
use sindri_model::{AgentId, StackId};

use crate::failure::Failure;
use crate::output::{Cell, Column, Resource};
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Id of one approval, or the beginning of it, to show with its whole plan.
    id: Option<String>,
    /// Include decided and superseded approvals.
    #[arg(long)]
    all: bool,
}

/// An approval with the names of its stack and agent.
#[derive(Serialize)]
pub(crate) struct ApprovalRow {
    #[serde(flatten)]
    pub approval: Approval,
    pub stack: String,
    pub agent: String,
}

impl Resource for ApprovalRow {
    const KIND: &'static str = "approval";
    const NONE: &'static str = "no plan waits for an approval";

    fn name(&self) -> String {
        self.approval.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("ID", |row: &Self| Cell::text(row.approval.id)),
            Column::new("STACK", |row: &Self| Cell::text(&row.stack)),
            Column::new("AGENT", |row: &Self| Cell::text(&row.agent)),
            Column::new("STATE", |row: &Self| Cell::text(row.approval.state)),
            Column::new("REQUESTED", |row: &Self| Cell::time(row.approval.created_at)),
            Column::new("REASONS", |row: &Self| Cell::text(row.approval.reasons.join("; "))),
        ]
    }
}

impl ApprovalRow {
    /// Describes the approval with its whole plan.
    pub(crate) fn describe(&self) -> String {
        let Approval { id, state, decided_by, reasons, plan, .. } = &self.approval;
        let decider = decided_by.iter().map(|decider| format!("decided by {decider}\n"));
        let reasons = reasons.iter().map(|reason| format!("- {}\n", to_printable(reason)));
        let details: String = decider.chain(reasons).collect();
        let (stack, agent) = (&self.stack, &self.agent);
        let plan = plan.trim_end();
        to_printable_lines(&format!("approval {id} of stack {stack} on agent {agent} is {state}\n{details}\n{plan}\n"))
    }
}

pub(crate) async fn list(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let Some(id) = &arguments.id else {
        let state = (!arguments.all).then_some(ApprovalState::Pending);
        return session.output.print_list(&load(session, state).await?);
    };
    let row = find_by_id(session, id).await?;
    let description = row.describe();
    session.output.print_document(&row, || vec![format!("approval/{}", row.approval.id)], || description)
}

/// Finds a pending approval by the beginning of its id, or any approval by its id.
pub(crate) async fn find_by_id(session: &Session, id: &str) -> Result<ApprovalRow, Failure> {
    let missing = match find_one(load(session, Some(ApprovalState::Pending)).await?, id) {
        Ok(row) => return Ok(row),
        Err(missing) => missing,
    };
    let Ok(id) = id.parse() else { return Err(missing) };
    let approval = session.client.get_approval(id).await?;
    add_names(session, vec![approval]).await?.pop().ok_or(missing)
}

/// Loads approvals with the names of their stacks and agents.
pub(crate) async fn load(session: &Session, state: Option<ApprovalState>) -> Result<Vec<ApprovalRow>, Failure> {
    add_names(session, session.client.list_approvals(state).await?).await
}

async fn add_names(session: &Session, approvals: Vec<Approval>) -> Result<Vec<ApprovalRow>, Failure> {
    if approvals.is_empty() {
        return Ok(Vec::new());
    }
    let overview = session.client.get_overview(None).await?;
    let agents: BTreeMap<AgentId, String> = overview.agents.into_iter().map(|agent| (agent.id, agent.name)).collect();
    let stacks: BTreeMap<StackId, String> = overview.stacks.into_iter().map(|stack| (stack.id, stack.name)).collect();
    let to_row = |approval: Approval| {
        let agent = agents.get(&approval.agent_id).cloned().unwrap_or_else(|| approval.agent_id.to_string());
        let stack = stacks.get(&approval.stack_id).cloned().unwrap_or_else(|| approval.stack_id.to_string());
        ApprovalRow { approval, stack, agent }
    };
    Ok(approvals.into_iter().map(to_row).collect())
}

/// Returns the only approval whose id begins like this.
fn find_one(approvals: Vec<ApprovalRow>, prefix: &str) -> Result<ApprovalRow, Failure> {
    let begins = |row: &ApprovalRow| row.approval.id.to_string().starts_with(&prefix.to_lowercase());
    let mut matching: Vec<ApprovalRow> = approvals.into_iter().filter(begins).collect();
    match (matching.pop(), matching.len()) {
        (Some(row), 0) if !prefix.is_empty() => Ok(row),
        (None, _) => Err(Failure::Usage(format!(
            "no pending approval has an id that begins with {prefix}: sindri approvals lists them, and --stack selects those of a stack"
        ))),
        (Some(_), others) => {
            let count = others + 1;
            Err(Failure::Usage(format!("{count} approvals have ids that begin with {prefix}: use more of the id")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_that_an_older_broker_has_stored_does_not_control_the_terminal() {
        let id = "01b8dac5-b412-7592-a5c9-359bf5002870";
        let approval = json!({
            "id": id, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "agent_id": id,
            "stack_id": id, "deployment_object_id": id, "digest": "a".repeat(64), "state": "pending",
            "reasons": ["12 of 13\u{1b}[8m\nobjects"], "plan": "- delete Namespace a\u{1b}[2K\u{1b}[1G\n- keep",
        });
        let approval = serde_json::from_value(approval).expect("a valid approval");
        let text = ApprovalRow { approval, stack: "web".to_owned(), agent: "east".to_owned() }.describe();
        assert!(text.ends_with("\n- 12 of 13 [8m objects\n\n- delete Namespace a [2K [1G\n- keep\n"), "{text:?}");
    }
}
