//! `sindri approve` and `sindri reject`: each plan is shown before it is decided about.

use std::io::{self, IsTerminal};

use clap::Args;
use sindri_model::wire::ApprovalState;

use crate::commands::approvals::{ApprovalRow, find_by_id, load};
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::output::print;
use crate::session::Session;

#[derive(Args)]
#[group(id = "selection", required = true, multiple = false, args = ["id", "stack", "all"])]
pub(crate) struct Arguments {
    /// Id of the approval, or the beginning of it.
    id: Option<String>,
    /// Name or id of a stack, to decide about every pending plan of it.
    #[arg(long)]
    stack: Option<String>,
    /// Decide about every pending plan that the key may decide about.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// A decision about a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Approve,
    Reject,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments, decision: Decision) -> Result<(), Failure> {
    let selected = select(session, arguments).await?;
    let is_for_people = session.output.format.is_for_people();
    if selected.is_empty() && is_for_people {
        return print("no plan waits for an approval\n");
    }
    let mut decided = Vec::new();
    let result = decide_each(session, &arguments.confirmation, selected, decision, &mut decided).await;
    if !is_for_people && (result.is_ok() || !decided.is_empty()) {
        session.output.print_list(&decided)?;
    }
    match result {
        Err(failure) if !decided.is_empty() => Err(add_decided(failure, &decided)),
        result => result,
    }
}

/// Says which plans were decided before a failure.
fn add_decided(failure: Failure, decided: &[ApprovalRow]) -> Failure {
    let described = decided.iter().map(|row| format!("{} is {}", row.approval.id, row.approval.state));
    let described = described.collect::<Vec<_>>().join(", ");
    Failure::Operation(format!("{failure}; before that, {described}"))
}

/// Decides about one plan after the other, and adds each to `decided`.
async fn decide_each(
    session: &Session,
    confirmation: &Confirmation,
    selected: Vec<ApprovalRow>,
    decision: Decision,
    decided: &mut Vec<ApprovalRow>,
) -> Result<(), Failure> {
    let is_for_people = session.output.format.is_for_people();
    // The plan is shown where the question about it is.
    let is_shown_at_question = !is_for_people || !io::stdout().is_terminal();
    for row in selected {
        let description = format!("{}\n", row.describe());
        if is_for_people {
            print(&description)?;
        }
        let verb = match decision {
            Decision::Approve => "Approve",
            Decision::Reject => "Reject",
        };
        let question = format!("{verb} this plan of stack {} on agent {}?", row.stack, row.agent);
        let details = if is_shown_at_question { description.as_str() } else { "" };
        if !confirmation.ask_about(session, details, &question)? {
            return Err(Failure::Operation("this plan was not decided, and no later one".to_owned()));
        }
        let approval = match decision {
            Decision::Approve => session.client.approve(row.approval.id).await?,
            Decision::Reject => session.client.reject(row.approval.id).await?,
        };
        let row = ApprovalRow { approval, ..row };
        if is_for_people {
            print(&describe_result(&row, decision))?;
        }
        decided.push(row);
    }
    Ok(())
}

async fn select(session: &Session, arguments: &Arguments) -> Result<Vec<ApprovalRow>, Failure> {
    if let Some(id) = &arguments.id {
        // A decision may be repeated.
        return Ok(vec![find_by_id(session, id).await?]);
    }
    let Some(stack) = &arguments.stack else { return load(session, Some(ApprovalState::Pending)).await };
    // Stacks of several generators may have one name.
    let stack = names::find_stack(&session.client, stack).await?;
    let mut selected = load(session, Some(ApprovalState::Pending)).await?;
    selected.retain(|row| row.approval.stack_id == stack.id);
    if selected.is_empty() {
        return Err(Failure::Usage(format!("no plan of stack {} waits for an approval", stack.name)));
    }
    Ok(selected)
}

fn describe_result(row: &ApprovalRow, decision: Decision) -> String {
    let next = match decision {
        Decision::Approve => String::new(),
        Decision::Reject => format!(
            "; nothing of this plan is carried out: to ask again, submit the revision again with sindri apply {} -f FILE",
            row.stack
        ),
    };
    format!("approval {} is {}{next}\n", row.approval.id, row.approval.state)
}
