//! `sindri events`: events of one agent, or of all agents about one stack, newest first; with `--follow` oldest first.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use sindri_client::EventQuery;
use sindri_model::text::to_printable;
use sindri_model::wire::{EventStatus, NamedEvent};
use tokio::time::sleep;

use crate::failure::Failure;
use crate::names::unknown_name;
use crate::output::{Cell, Column, Format, Resource, Style, full_name, note, print_or_fail};
use crate::session::Session;
use crate::since::Since;

/// Time between two requests of `--follow`.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or id of an agent or a stack.
    subject: String,
    /// Only events of the last time, such as 30m or 2h, or from a time on, such as 2027-01-31T12:00:00Z.
    #[arg(long, value_name = "DURATION|TIME")]
    since: Option<Since>,
    /// Largest number of events: the newest ones.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    /// Show new events below the present ones as they arrive, until the command is interrupted; as JSON one on each line.
    #[arg(short, long)]
    follow: bool,
}

/// An event as people read it.
#[derive(Serialize)]
#[serde(transparent)]
struct EventRow(NamedEvent);

impl EventRow {
    fn outcome(&self) -> (&str, Style) {
        match (&self.0.status, self.0.is_deletion_marker) {
            (EventStatus::Success, false) => ("applied", Style::Good),
            (EventStatus::Success, true) => ("removed", Style::Good),
            (EventStatus::Failure, _) => ("failed", Style::Bad),
            (EventStatus::Other(status), _) => (status, Style::Plain),
        }
    }

    /// Returns the message with the name of the stack instead of its id.
    fn message(&self) -> String {
        let message = self.0.message.as_deref().unwrap_or_default();
        message.replace(&self.0.stack_id.to_string(), &self.0.stack_name)
    }
}

impl Resource for EventRow {
    const KIND: &'static str = "event";
    const NONE: &'static str = "there is no such event";

    fn name(&self) -> String {
        self.0.id.to_string()
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            Column::new("TIME", |row: &Self| Cell::time(row.0.created_at)),
            Column::new("AGENT", |row: &Self| Cell::text(&row.0.agent_name)),
            Column::new("STACK", |row: &Self| Cell::text(&row.0.stack_name)),
            Column::new("SEQUENCE", |row: &Self| Cell::text(row.0.sequence_id)),
            Column::new("OUTCOME", |row: &Self| {
                let (outcome, style) = row.outcome();
                Cell::text(outcome).styled(style)
            }),
            Column::new("MESSAGE", |row: &Self| Cell::text(row.message())),
        ]
    }
}

pub(crate) async fn run(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    let since = arguments.since.map(|since| since.to_time(session.output.now));
    let mut query = EventQuery { since, ..find_subject(session, &arguments.subject).await? };
    let limit = usize::from(arguments.limit);
    let (newest, has_more) = session.client.list_newest_events(&query, limit).await?;
    if has_more {
        note(&format!("only the newest {limit} events are shown: --limit shows more"));
    }
    query.after = newest.first().map(|event| event.id);
    let mut events: Vec<EventRow> = newest.into_iter().map(EventRow).collect();
    if !arguments.follow {
        return session.output.print_list(&events);
    }
    events.reverse();
    print_new(session, &events)?;
    loop {
        sleep(FOLLOW_INTERVAL).await;
        session.refresh_login().await.unwrap_or_else(|failure| note(&format!("sindri: {}", failure.to_shown())));
        match session.client.list_named_events(&query).await {
            Ok(page) => {
                query.after = page.last().map(|event| event.id).or(query.after);
                print_new(session, &page.into_iter().map(EventRow).collect::<Vec<_>>())?;
            }
            Err(error) if error.is_transient() => note(&to_printable(&format!("sindri: {error}; it is tried again"))),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Prints events below those that were printed before. A pipe that was closed ends the command.
fn print_new(session: &Session, events: &[EventRow]) -> Result<(), Failure> {
    let to_failure = |error: serde_json::Error| Failure::Operation(format!("an event cannot be formatted: {error}"));
    for row in events {
        let line = match session.output.format {
            Format::Json | Format::Yaml => serde_json::to_string(row).map_err(to_failure)?,
            Format::Name => full_name(row),
            Format::Table | Format::Wide => {
                let (NamedEvent { created_at, agent_name, stack_name, sequence_id, .. }, (outcome, _)) =
                    (&row.0, row.outcome());
                let line =
                    format!("{created_at:.0}  {agent_name}  {stack_name}  {sequence_id}  {outcome}  {}", row.message());
                session.output.cut_line(&to_printable(&line))
            }
        };
        print_or_fail(&format!("{line}\n"))?;
    }
    Ok(())
}

/// Finds the agent or the stack with this name or id. The id of a deleted stack is found too.
async fn find_subject(session: &Session, subject: &str) -> Result<EventQuery, Failure> {
    let (agents, stacks) = (session.client.list_agents().await?, session.client.list_stacks().await?);
    let is_agent = |agent: &&sindri_model::wire::Agent| agent.name == subject || agent.id.to_string() == subject;
    let mut named = agents.iter().filter(is_agent);
    match (named.next(), named.next()) {
        (Some(agent), None) => return Ok(EventQuery { agent: Some(agent.id), ..EventQuery::default() }),
        (Some(_), Some(_)) => {
            return Err(Failure::Usage(format!("several agents have the name {subject}: use the id instead")));
        }
        (None, _) => {}
    }
    let mut named = stacks.iter().filter(|stack| stack.name == subject || stack.id.to_string() == subject);
    let id = match (named.next(), named.next()) {
        (Some(stack), None) => Some(stack.id),
        (Some(_), Some(_)) => {
            return Err(Failure::Usage(format!("several stacks have the name {subject}: use the id instead")));
        }
        (None, _) => subject.parse().ok(),
    };
    let names = || agents.iter().map(|agent| agent.name.as_str()).chain(stacks.iter().map(|stack| stack.name.as_str()));
    let missing = || unknown_name("agent and no stack", subject, names(), "sindri agent list and sindri stack list");
    Ok(EventQuery { stack: Some(id.ok_or_else(missing)?), ..EventQuery::default() })
}
