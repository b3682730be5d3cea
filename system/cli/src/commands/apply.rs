//! `sindri apply`: validates files and submits them as the newest revision of a stack.

use clap::Args;
use sindri_model::wire::{NewStack, Stack};

use crate::commands::labels::{accept_existing, check_label};
use crate::commands::{stack, target};
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::session::Session;
use crate::submission::{BundleFiles, confirm_empty, describe, finish, submit_text};
use crate::wait::Wait;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of the stack.
    stack: String,
    #[command(flatten)]
    files: BundleFiles,
    /// Create the stack if it does not exist.
    #[arg(long)]
    create: bool,
    /// Name or id of an agent to which the stack is assigned; may be repeated.
    #[arg(long = "target", value_name = "AGENT")]
    targets: Vec<String>,
    /// Label of agents to which the stack is assigned; may be repeated.
    #[arg(long = "target-label", value_name = "LABEL")]
    target_labels: Vec<String>,
    /// Submit also if the newest revision has the same content.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let bundle = arguments.files.read()?;
    arguments.target_labels.iter().try_for_each(|label| check_label(label))?;
    let mut agents = Vec::new();
    for agent in &arguments.targets {
        agents.push(names::find_agent(&session.client, agent).await?);
    }
    let stack = find_or_create(session, arguments).await?;
    target::check_registrations(session, &stack, &agents).await?;
    confirm_empty(session, &stack, bundle.objects == 0, &arguments.confirmation).await?;
    let submitted = submit_text(session, &stack, &bundle.text, arguments.force).await?;
    let plural = if bundle.objects == 1 { "" } else { "s" };
    let sentence = describe(&submitted, &format!(", with {} object{plural}", bundle.objects));
    // Assigned after the submission: a cluster must not get the revision before it.
    finish(session, &stack, submitted, &sentence, &arguments.wait, async || {
        for agent in &agents {
            target::assign(session, &stack, agent).await?;
        }
        for label in &arguments.target_labels {
            accept_existing(session.client.label_stack(stack.id, label).await)?;
        }
        Ok(())
    })
    .await
}

async fn find_or_create(session: &Session, arguments: &Arguments) -> Result<Stack, Failure> {
    let name = &arguments.stack;
    let is_missing = async || -> Result<bool, Failure> {
        let stacks = session.client.list_stacks().await?;
        Ok(!stacks.iter().any(|stack| stack.name == *name || stack.id.to_string() == *name))
    };
    if !arguments.create || !is_missing().await? {
        let found = names::find_stack(&session.client, name).await;
        return found.map_err(|failure| match failure {
            Failure::UnknownName { message, .. } => {
                Failure::UnknownName { message, advice: Some("to create the stack, add --create".to_owned()) }
            }
            other => other,
        });
    }
    let generator_id = stack::find_or_create_generator(session, None).await?;
    let request = NewStack { name: name.clone(), description: None, generator_id };
    match session.client.create_stack(&request).await {
        // Another command has created it meanwhile.
        Err(error) if error.status() == Some(http::StatusCode::CONFLICT) => {
            names::find_stack(&session.client, name).await
        }
        created => Ok(created?),
    }
}
