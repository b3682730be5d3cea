//! `sindri status`: the state of each stack on each cluster, and the causes.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use sindri_model::StackId;
use sindri_model::text::to_printable;
use sindri_model::wire::{Stack, StatusOverview};
use tokio::time::sleep;

use crate::commands::conditions;
use crate::failure::Failure;
use crate::names;
use crate::output::{Format, Resource, note, print, print_or_fail};
use crate::session::Session;
use crate::status::{GeneratorNames, StackNames, find_ambiguous, find_wrong, format_overview};

/// Time between two requests of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Escape sequence that moves to the first line and clears the terminal.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of one stack; with `--output wide` its conditions are shown too.
    stack: Option<String>,
    /// Exit with 1 if a stack is Failed, Blocked, Drifted, Offline or Inactive, or an agent offline or inactive.
    #[arg(long)]
    exit_code: bool,
    /// Show the status again and again, until the command is interrupted.
    #[arg(short, long, conflicts_with = "exit_code")]
    watch: bool,
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let stack = match &arguments.stack {
        Some(name) => Some(find_stack(session, name).await?),
        None => None,
    };
    if arguments.watch {
        return watch(session, stack).await;
    }
    let overview = session.client.get_overview(stack).await?;
    let is_listed = arguments.stack.is_none() && !arguments.exit_code;
    if is_listed && overview.stacks.is_empty() && session.output.format.is_for_people() {
        note(Stack::NONE);
    }
    let names = load_names(session, &overview).await?;
    print(&format(session, stack, &overview, &names).await?)?;
    match find_wrong(&overview, &names).as_slice() {
        wrong if arguments.exit_code && !wrong.is_empty() => {
            Err(Failure::Operation(format!("something is wrong with {}", wrong.join(", "))))
        }
        _ => Ok(()),
    }
}

/// Finds a stack by name or id, also one that is deleted and not yet removed everywhere.
async fn find_stack(session: &Session, name: &str) -> Result<StackId, Failure> {
    let missing = match names::find_stack(&session.client, name).await {
        Ok(stack) => return Ok(stack.id),
        Err(missing) => missing,
    };
    let overview = session.client.get_overview(None).await?;
    let mut named = overview.stacks.iter().filter(|stack| stack.name == name || stack.id.to_string() == name);
    match (named.next(), named.next()) {
        (Some(stack), None) => Ok(stack.id),
        _ => Err(missing),
    }
}

/// Returns the names of the stacks. Those of generators are loaded only if a name is not enough.
async fn load_names(session: &Session, overview: &StatusOverview) -> Result<StackNames, Failure> {
    let mut generators = GeneratorNames::new();
    if !find_ambiguous(&overview.stacks).is_empty() {
        let known = names::list_generators(&session.client).await?.into_iter();
        generators = known.map(|generator| (generator.id, generator.name)).collect();
    }
    Ok(StackNames::new(&overview.stacks, &generators))
}

async fn format(
    session: &Session,
    stack: Option<StackId>,
    overview: &StatusOverview,
    names: &StackNames,
) -> Result<String, Failure> {
    let mut text = format_overview(overview, names, &session.output);
    if let (Some(stack), Format::Wide) = (stack, session.output.format) {
        let name = overview.stacks.first().map_or("", |stack| stack.name.as_str());
        let conditions = conditions::describe(session, name, stack).await?;
        text.extend(conditions.map(|conditions| format!("\n{conditions}")));
    }
    let full_names = || overview.stacks.iter().map(|stack| format!("stack/{}", stack.name)).collect();
    session.output.format_document(overview, full_names, || text)
}

async fn watch(session: &Session, stack: Option<StackId>) -> Result<(), Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    loop {
        match read_text(session, stack).await {
            Ok(None) => return Err(Failure::Operation("the stack was deleted, and no cluster has it".to_owned())),
            Ok(Some(text)) => print_or_fail(&if is_terminal { format!("{CLEAR}{text}") } else { format!("{text}\n") })?,
            Err(failure) if failure.is_transient() => {
                note(&to_printable(&format!("sindri: {failure}; it is tried again")))
            }
            Err(failure) => return Err(failure),
        }
        sleep(WATCH_INTERVAL).await;
        session.refresh_login().await.unwrap_or_else(|failure| note(&format!("sindri: {}", failure.to_shown())));
    }
}

/// Returns the status as text; `None` if the stack does not exist any more.
async fn read_text(session: &Session, stack: Option<StackId>) -> Result<Option<String>, Failure> {
    let overview = session.client.get_overview(stack).await?;
    if stack.is_some() && overview.stacks.is_empty() {
        return Ok(None);
    }
    let names = load_names(session, &overview).await?;
    format(session, stack, &overview, &names).await.map(Some)
}
