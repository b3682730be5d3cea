//! `sindri stack suspend` and `resume`, everywhere or on the clusters of some agents.

use clap::Args;
use sindri_client::Client;
use sindri_model::policy::{PolicyValue, SUSPEND_ANNOTATION, Suspension};
use sindri_model::wire::{Agent, Stack, StackSuspension, SuspensionChange};

use crate::commands::labels::accept_missing;
use crate::failure::Failure;
use crate::names;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Suspend {
    /// Name or id of the stack.
    stack: String,
    /// Name or id of an agent, to suspend the stack on its cluster too, and on no other one; may be repeated.
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Resume {
    /// Name or id of the stack.
    stack: String,
    /// Name or id of an agent, to write the stack again on its cluster only; may be repeated.
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<String>,
}

/// Adds clusters to those on which a stack is suspended. No cluster is resumed.
pub(crate) async fn suspend(session: &Session, arguments: &Suspend) -> Result<(), Failure> {
    let client = &session.client;
    let stack = names::find_stack(client, &arguments.stack).await?;
    let print = |sentence: String| session.output.print_change(&stack, &sentence);
    let name = &stack.name;
    if arguments.agents.is_empty() {
        client.set_stack_annotation(stack.id, SUSPEND_ANNOTATION, "true").await?;
        return print(format!(
            "stack {name} is suspended on every cluster: nothing of it is written, and drift is reported"
        ));
    }
    let change =
        SuspensionChange { suspend: find_names(client, &arguments.agents).await?, ..SuspensionChange::default() };
    let StackSuspension { everywhere, agents } = client.change_stack_suspension(stack.id, &change).await?;
    if everywhere {
        return print(format!("stack {name} is suspended on every cluster already; nothing was changed"));
    }
    print(format!(
        "stack {name} is suspended on the clusters of {}: nothing of it is written there, and drift is reported",
        agents.join(", ")
    ))
}

/// Resumes a stack on the clusters of some agents, or on all.
pub(crate) async fn resume(session: &Session, arguments: &Resume) -> Result<(), Failure> {
    let client = &session.client;
    let stack = names::find_stack(client, &arguments.stack).await?;
    let print = |sentence: String| session.output.print_change(&stack, &sentence);
    let name = &stack.name;
    if arguments.agents.is_empty() {
        accept_missing(client.remove_stack_annotation(stack.id, SUSPEND_ANNOTATION).await)?;
        return print(format!("stack {name} is written again on every cluster"));
    }
    let change =
        SuspensionChange { resume: find_names(client, &arguments.agents).await?, ..SuspensionChange::default() };
    let before = read_suspension(client, &stack).await?;
    if let Some(agent) = change.resume.iter().find(|agent| !before.includes(agent)) {
        return Err(Failure::Usage(format!("stack {name} is not suspended on the cluster of {agent}")));
    }
    let StackSuspension { everywhere, agents } = client.change_stack_suspension(stack.id, &change).await?;
    if everywhere {
        return Err(Failure::Usage(format!(
            "stack {name} is suspended on every cluster: name the agents on whose clusters it stays so with sindri stack \
             annotate {name} {SUSPEND_ANNOTATION}=AGENT,AGENT, or resume it without --agent"
        )));
    }
    if agents.is_empty() {
        return print(format!("stack {name} is written again on every cluster"));
    }
    print(format!("stack {name} is written again, except on the clusters of {}", agents.join(", ")))
}

/// Returns the names of agents. The annotation has no other way to tell agents apart, so a name that several have is refused.
async fn find_names(client: &Client, requested: &[String]) -> Result<Vec<String>, Failure> {
    let known = names::list_agents(client).await?;
    let mut found: Vec<String> = Vec::new();
    for requested in requested {
        let name = names::find_agent(client, requested).await?.name;
        let clusters: Vec<&str> =
            known.iter().filter(|agent| agent.name == name).map(|agent: &Agent| agent.cluster_name.as_str()).collect();
        if clusters.len() > 1 {
            return Err(Failure::Usage(format!(
                "a stack is suspended by the names of agents, and several have the name {name}, on the clusters {}",
                clusters.join(", ")
            )));
        }
        if !found.contains(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

async fn read_suspension(client: &Client, stack: &Stack) -> Result<Suspension, Failure> {
    let annotations = client.list_stack_annotations(stack.id).await?;
    let Some(present) = annotations.iter().find(|annotation| annotation.key == SUSPEND_ANNOTATION) else {
        return Ok(Suspension::Everywhere(false));
    };
    match PolicyValue::parse(SUSPEND_ANNOTATION, &present.value) {
        Ok(Some(PolicyValue::Suspend(suspension))) => Ok(suspension),
        Ok(_) => Ok(Suspension::Everywhere(false)),
        Err(reason) => {
            Err(Failure::Usage(format!("stack {} has an annotation that is not valid: {reason}", stack.name)))
        }
    }
}
