//! `sindri stack suspend` and `resume`.

use clap::Args;
use sindri_model::policy::SUSPEND_ANNOTATION;

use crate::commands::labels::accept_missing;
use crate::failure::Failure;
use crate::names;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Suspend {
    /// Name or id of the stack.
    stack: String,
    /// Name or id of an agent, to suspend the stack on its cluster only; may be repeated.
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<String>,
}

pub(crate) async fn suspend(session: &Session, arguments: &Suspend) -> Result<(), Failure> {
    let client = &session.client;
    let stack = names::find_stack(client, &arguments.stack).await?;
    let mut suspended = Vec::new();
    for agent in &arguments.agents {
        suspended.push(names::find_agent(client, agent).await?.name);
    }
    let (value, place) = match suspended.join(",") {
        names if names.is_empty() => ("true".to_owned(), "every cluster".to_owned()),
        names => (names.clone(), format!("the clusters of {names}")),
    };
    client.set_stack_annotation(stack.id, SUSPEND_ANNOTATION, &value).await?;
    let sentence =
        format!("stack {} is suspended on {place}: nothing of it is written, and drift is reported", stack.name);
    session.output.print_change(&stack, &sentence)
}

pub(crate) async fn resume(session: &Session, stack: &str) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, stack).await?;
    accept_missing(session.client.remove_stack_annotation(stack.id, SUSPEND_ANNOTATION).await)?;
    session.output.print_change(&stack, &format!("stack {} is written again on every cluster", stack.name))
}
