//! `sindri webhook`: subscriptions to events.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sindri_client::Client;
use sindri_model::wire::{CreateWebhookRequest, UpdateWebhookRequest, WebhookFilters};

use crate::confirm::Confirmation;
use crate::connect::read_key_file;
use crate::failure::Failure;
use crate::names;
use crate::new_key::KeyDestination;
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the subscriptions.
    List,
    /// Show one subscription, without its URL and secrets.
    Show(Webhook),
    /// Create a subscription and print the secret that signs its messages, which cannot be printed again.
    Create(Create),
    /// Change a subscription, and keep everything that is not given.
    Update(Update),
    /// Send a test message; `sindri webhook deliveries` shows its result.
    Test(Webhook),
    /// Show the newest messages of a subscription, and the result of each.
    Deliveries(Deliveries),
    /// Delete a subscription and its messages.
    Delete(Delete),
}

#[derive(Args)]
pub(crate) struct Webhook {
    /// Name or id of the subscription.
    webhook: String,
}

#[derive(Args)]
pub(crate) struct Create {
    /// Name of the subscription.
    name: String,
    /// URL to which messages are sent.
    #[arg(long)]
    url: String,
    /// Type of event, such as deployment.failed or `deployment.*`; may be repeated.
    #[arg(long = "event", required = true, value_name = "TYPE")]
    events: Vec<String>,
    /// Only events about this stack.
    #[arg(long)]
    stack: Option<String>,
    /// Only events about this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Let agents with this label send the messages, instead of the broker; may be repeated.
    #[arg(long = "agent-label", value_name = "LABEL")]
    agent_labels: Vec<String>,
    /// File with the value of the Authorization header.
    #[arg(long, value_name = "FILE")]
    authorization_file: Option<PathBuf>,
    /// Maximum number of retries of a message.
    #[arg(long, value_name = "NUMBER")]
    max_retries: Option<u16>,
    /// Seconds after which an attempt has failed.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u16>,
    #[command(flatten)]
    key: KeyDestination,
}

#[derive(Args)]
pub(crate) struct Update {
    #[command(flatten)]
    webhook: Webhook,
    /// New URL.
    #[arg(long)]
    url: Option<String>,
    /// Types of events instead of the present ones; may be repeated.
    #[arg(long = "event", value_name = "TYPE")]
    events: Vec<String>,
    /// File with the new value of the Authorization header; an empty file removes it.
    #[arg(long, value_name = "FILE")]
    authorization_file: Option<PathBuf>,
    /// Send messages again.
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Send no messages.
    #[arg(long)]
    disable: bool,
}

#[derive(Args)]
pub(crate) struct Deliveries {
    #[command(flatten)]
    webhook: Webhook,
    /// Maximum number of messages, at most 1000.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    webhook: Webhook,
    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<(), Failure> {
    let Session { client, output, .. } = session;
    match command {
        Command::List => output.print_list(&client.list_webhooks().await?),
        Command::Show(arguments) => output.print_object(&names::find_webhook(client, &arguments.webhook).await?),
        Command::Create(arguments) => create(session, arguments).await,
        Command::Update(arguments) => update(session, arguments).await,
        Command::Test(arguments) => test(session, &arguments.webhook).await,
        Command::Deliveries(arguments) => {
            let webhook = names::find_webhook(client, &arguments.webhook.webhook).await?;
            output.print_list(&client.list_deliveries(webhook.id, usize::from(arguments.limit)).await?)
        }
        Command::Delete(arguments) => delete(session, &arguments).await,
    }
}

async fn create(session: &Session, arguments: Create) -> Result<(), Failure> {
    let filters = find_filters(&session.client, arguments.stack.as_deref(), arguments.agent.as_deref()).await?;
    let printer = arguments.key.prepare(session.output)?;
    let request = CreateWebhookRequest {
        name: arguments.name,
        url: arguments.url,
        auth_header: read_authorization(arguments.authorization_file.as_deref())?,
        event_types: arguments.events,
        filters,
        target_labels: Some(arguments.agent_labels).filter(|labels| !labels.is_empty()),
        max_retries: arguments.max_retries.map(i64::from),
        timeout_seconds: arguments.timeout.map(i64::from),
        signing_secret: None,
    };
    let created = session.client.create_webhook(&request).await?;
    let webhook = created.webhook;
    let sentence = format!("webhook {} ({})", webhook.name, webhook.id);
    match created.secret {
        Some(secret) => printer.print(&webhook, &format!("{sentence}; the key signs its messages"), &secret),
        None => session.output.print_change(&webhook, &sentence),
    }
}

async fn find_filters(
    client: &Client,
    stack: Option<&str>,
    agent: Option<&str>,
) -> Result<Option<WebhookFilters>, Failure> {
    let mut filters = WebhookFilters::default();
    if let Some(stack) = stack {
        filters.stack_id = Some(names::find_stack(client, stack).await?.id);
    }
    if let Some(agent) = agent {
        filters.agent_id = Some(names::find_agent(client, agent).await?.id);
    }
    Ok((filters != WebhookFilters::default()).then_some(filters))
}

fn read_authorization(path: Option<&Path>) -> Result<Option<String>, Failure> {
    path.map(|path| Ok(read_key_file(path)?.trim().to_owned())).transpose()
}

async fn update(session: &Session, arguments: Update) -> Result<(), Failure> {
    let webhook = names::find_webhook(&session.client, &arguments.webhook.webhook).await?;
    let changes = UpdateWebhookRequest {
        url: arguments.url,
        auth_header: read_authorization(arguments.authorization_file.as_deref())?,
        event_types: Some(arguments.events).filter(|events| !events.is_empty()),
        enabled: (arguments.enable || arguments.disable).then_some(arguments.enable),
        ..UpdateWebhookRequest::default()
    };
    let webhook = session.client.update_webhook(webhook.id, &changes).await?;
    session.output.print_change(&webhook, &format!("webhook {} is changed", webhook.name))
}

async fn test(session: &Session, webhook: &str) -> Result<(), Failure> {
    let webhook = names::find_webhook(&session.client, webhook).await?;
    let delivery = session.client.test_webhook(webhook.id).await?.delivery_id;
    let sentence =
        format!("test message {delivery} is queued; sindri webhook deliveries {} shows its result", webhook.name);
    session.output.print_change(&webhook, &sentence)
}

async fn delete(session: &Session, arguments: &Delete) -> Result<(), Failure> {
    let webhook = names::find_webhook(&session.client, &arguments.webhook.webhook).await?;
    arguments.confirmation.ask(session, &format!("Delete webhook {} and its messages?", webhook.name))?;
    session.client.delete_webhook(webhook.id).await?;
    session.output.print_change(&webhook, &format!("webhook {} is deleted", webhook.name))
}
