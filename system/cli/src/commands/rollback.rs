//! `sindri rollback`: submits the bundle of an earlier revision again.

use clap::Args;
use sindri_model::Bundle;
use sindri_model::wire::{RevisionSummary, Stack};

use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::names;
use crate::session::Session;
use crate::submission::{confirm_empty, describe, finish, submit_text};
use crate::wait::Wait;

/// Revisions among which a number is looked up.
const REVISIONS_MAX: usize = 10_000;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of the stack.
    stack: String,
    /// Number of the revision in `sindri history`; by default the one before the newest.
    #[arg(long, value_name = "REVISION")]
    to: Option<i64>,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let stack = names::find_stack(&session.client, &arguments.stack).await?;
    let revision = find_revision(session, &stack, arguments.to).await?;
    let text = session.client.get_revision(revision.id).await?.yaml_content;
    // Many texts declare no object: with a comment, or as JSON.
    let is_empty = Bundle::parse(&text).is_ok_and(|bundle| bundle.objects().is_empty());
    confirm_empty(session, &stack, is_empty, &arguments.confirmation).await?;
    let submitted = submit_text(session, &stack, &text, false).await?;
    let sentence = describe(&submitted, &format!(", with the content of revision {}", revision.number));
    finish(session, &stack, submitted, &sentence, &arguments.wait, async || Ok(())).await
}

async fn find_revision(session: &Session, stack: &Stack, number: Option<i64>) -> Result<RevisionSummary, Failure> {
    let limit = if number.is_some() { REVISIONS_MAX } else { 2 };
    let history = session.client.list_history(stack.id, limit).await?;
    let found = match number {
        Some(number) => history.into_iter().find(|revision| revision.number == number),
        None => history.into_iter().nth(1),
    };
    let usage = |reason: &str| Failure::Usage(format!("{reason}; sindri history {} lists them", stack.name));
    match (found, number) {
        (Some(revision), _) if revision.is_deletion_marker => Err(usage(&format!(
            "revision {} of stack {} is a deletion marker and has no content; choose another with --to",
            revision.number, stack.name
        ))),
        (Some(revision), _) => Ok(revision),
        (None, Some(number)) => Err(usage(&format!("stack {} has no revision {number}", stack.name))),
        (None, None) => Err(usage(&format!("stack {} has no revision before the newest", stack.name))),
    }
}
