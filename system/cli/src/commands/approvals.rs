//! `sindri approvals`, `sindri approve` and `sindri reject`: plans that agents hold, and decisions about them.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use sindri_model::ApprovalId;
use sindri_model::wire::{Approval, ApprovalState};

use crate::failure::Failure;
use crate::output::{Cell, Column, Resource, print};
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Id of one approval, to show with its whole plan.
    id: Option<String>,
    /// Include decided and superseded approvals.
    #[arg(long)]
    all: bool,
}

/// An approval with the names of its stack and agent.
#[derive(Serialize)]
struct ApprovalRow {
    #[serde(flatten)]
    approval: Approval,
    stack: String,
    agent: String,
}

impl Resource for ApprovalRow {
    const KIND: &'static str = "approval";

    fn name(&self) -> String {
        self.approval.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("ID", |row: &Self| Cell::text(row.approval.id)),
            Column::new("STACK", |row: &Self| Cell::text(&row.stack)),
            Column::new("AGENT", |row: &Self| Cell::text(&row.agent)),
            Column::new("STATE", |row: &Self| Cell::text(row.approval.state)),
            Column::new("REASONS", |row: &Self| Cell::text(row.approval.reasons.join("; "))),
        ]
    }
}

pub(crate) async fn list(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let client = &session.client;
    if let Some(id) = &arguments.id {
        return print(&describe(&client.get_approval(parse_id(id)?).await?));
    }
    let approvals = client.list_approvals((!arguments.all).then_some(ApprovalState::Pending)).await?;
    let agents: BTreeMap<_, _> = client.list_agents().await?.into_iter().map(|agent| (agent.id, agent.name)).collect();
    let stacks: BTreeMap<_, _> = client.list_stacks().await?.into_iter().map(|stack| (stack.id, stack.name)).collect();
    let to_row = |approval: Approval| {
        let agent = agents.get(&approval.agent_id).cloned().unwrap_or_else(|| approval.agent_id.to_string());
        let stack = stacks.get(&approval.stack_id).cloned().unwrap_or_else(|| approval.stack_id.to_string());
        ApprovalRow { approval, stack, agent }
    };
    session.output.print_list(&approvals.into_iter().map(to_row).collect::<Vec<_>>())
}

fn describe(approval: &Approval) -> String {
    let decider = approval.decided_by.iter().map(|decider| format!("decided by {decider}\n"));
    let reasons = approval.reasons.iter().map(|reason| format!("- {reason}\n"));
    let details: String = decider.chain(reasons).collect();
    format!("approval {} is {}\n{details}\n{}\n", approval.id, approval.state, approval.plan.trim_end())
}

pub(crate) async fn approve(session: &Session, id: &str) -> Result<(), Failure> {
    print_decision(session.client.approve(parse_id(id)?).await?)
}

pub(crate) async fn reject(session: &Session, id: &str) -> Result<(), Failure> {
    print_decision(session.client.reject(parse_id(id)?).await?)
}

fn print_decision(approval: Approval) -> Result<(), Failure> {
    print(&format!("approval {} is {}\n", approval.id, approval.state))
}

fn parse_id(id: &str) -> Result<ApprovalId, Failure> {
    id.parse().map_err(|_| Failure::Usage(format!("{id} is not the id of an approval")))
}
