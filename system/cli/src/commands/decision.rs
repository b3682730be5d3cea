//! `sindri approve` and `sindri reject`: each plan is shown before it is decided about.

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
    let mut decided = Vec::new();
    for row in selected {
        if is_for_people {
            print(&format!("{}\n", row.describe()))?;
        }
        let verb = match decision {
            Decision::Approve => "Approve",
            Decision::Reject => "Reject",
        };
        arguments
            .confirmation
            .ask(session, &format!("{verb} this plan of stack {} on agent {}?", row.stack, row.agent))?;
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
    if is_for_people { Ok(()) } else { session.output.print_list(&decided) }
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
        Decision::Reject => format!("; nothing of this plan is carried out until stack {} changes", row.stack),
    };
    format!("approval {} is {}{next}\n", row.approval.id, row.approval.state)
}
