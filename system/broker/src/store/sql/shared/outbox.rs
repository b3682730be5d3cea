//! Outbox of webhook messages: each message is written in the transaction of the change that it reports.

use serde_json::{Value as Json, json};
use sindri_model::wire::WebhookFilters;
use sindri_model::{AgentId, DeliveryId, EventId, StackId, WebhookId};

use super::changes;
use super::session::{PipelinedQuery, Session, execute_batch, fetch_all, read_all};
use super::values::{Row, Value, row};
use crate::event_types::{EventPatterns, EventType};
use crate::store::records::{StoreError, WriteContext};

/// An event that subscribers may receive.
pub(crate) struct WebhookEvent {
    pub event_type: EventType,
    pub agent: Option<AgentId>,
    pub stack: Option<StackId>,
    pub data: Json,
}

/// The parts of a subscription that select its events.
pub(crate) struct Subscriber {
    id: WebhookId,
    event_types: Vec<String>,
    filters: Option<WebhookFilters>,
    target_labels: Option<String>,
}

const SUBSCRIBERS: &str = "SELECT id, event_types, filters, target_labels FROM webhooks WHERE enabled = 1 ORDER BY id";

/// Queues a message for each subscriber of an event.
pub(crate) async fn publish(
    session: &mut dyn Session,
    context: &WriteContext,
    event: WebhookEvent,
) -> Result<(), StoreError> {
    publish_all(session, &[(context, event)]).await
}

/// Queues a message for each subscriber of each event.
pub(crate) async fn publish_all(
    session: &mut dyn Session,
    events: &[(&WriteContext, WebhookEvent)],
) -> Result<(), StoreError> {
    let subscribers = fetch_all(session, SUBSCRIBERS, &[], read).await?;
    publish_to(session, &subscribers, events).await
}

/// Query for the subscribers; [`read_subscribers`] reads its rows.
pub(crate) fn query_subscribers() -> PipelinedQuery {
    PipelinedQuery::Single(SUBSCRIBERS, Vec::new())
}

/// Reads the rows of [`query_subscribers`].
pub(crate) fn read_subscribers(rows: Vec<Row>) -> Result<Vec<Subscriber>, StoreError> {
    read_all(rows, read)
}

/// Queues a message for each of the given subscribers that wants an event.
pub(crate) async fn publish_to(
    session: &mut dyn Session,
    subscribers: &[Subscriber],
    events: &[(&WriteContext, WebhookEvent)],
) -> Result<(), StoreError> {
    let mut queued = Vec::new();
    for (context, event) in events {
        let mut receivers = subscribers.iter().filter(|subscriber| is_subscribed(subscriber, event)).peekable();
        if receivers.peek().is_some() {
            let message = Message::new(context, event);
            queued.extend(receivers.map(|receiver| message.address_to(receiver.id, receiver.target_labels.clone())));
        }
    }
    queue(session, queued).await
}

/// The message about one event, the same for all subscribers.
pub(crate) struct Message<'a> {
    context: &'a WriteContext,
    event: EventId,
    event_type: EventType,
    text: String,
}

/// A message to one subscriber, as a row of the table `deliveries`.
pub(crate) struct AddressedMessage {
    pub id: DeliveryId,
    row: Vec<Value>,
}

impl<'a> Message<'a> {
    pub(crate) fn new(context: &'a WriteContext, event: &WebhookEvent) -> Self {
        let id = EventId::generate_at(context.time, &context.entropy);
        let text = json!({
            "id": id,
            "event_type": event.event_type.as_str(),
            "timestamp": context.time,
            "data": event.data,
        });
        Self { context, event: id, event_type: event.event_type, text: text.to_string() }
    }

    pub(crate) fn address_to(&self, subscriber: WebhookId, target_labels: Option<String>) -> AddressedMessage {
        let id = DeliveryId::generate_at(self.context.time, &self.context.entropy);
        let (event_type, at) = (self.event_type.as_str(), self.context.time);
        AddressedMessage { id, row: row![id, subscriber, event_type, self.event, &self.text, target_labels, at] }
    }
}

/// Writes messages to the table `deliveries`.
pub(crate) async fn queue(session: &mut dyn Session, messages: Vec<AddressedMessage>) -> Result<(), StoreError> {
    if messages.is_empty() {
        return Ok(());
    }
    let sql = "WITH batch (id, webhook_id, event_type, event_id, payload, target_labels, at)
                 AS ({TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT})
               INSERT INTO deliveries (id, webhook_id, event_type, event_id, payload, target_labels, status, attempts,
                 due_at, created_at)
               SELECT id, webhook_id, event_type, event_id, payload, target_labels, 'pending', 0, at, at FROM batch";
    execute_batch(session, sql, messages.into_iter().map(|message| message.row).collect()).await?;
    changes::record_delivery_change(session);
    Ok(())
}

fn is_subscribed(subscriber: &Subscriber, event: &WebhookEvent) -> bool {
    let filters = subscriber.filters.as_ref();
    EventPatterns::parse(&subscriber.event_types).is_ok_and(|patterns| patterns.matches(event.event_type))
        && filters.and_then(|filters| filters.agent_id).is_none_or(|agent| event.agent == Some(agent))
        && filters.and_then(|filters| filters.stack_id).is_none_or(|stack| event.stack == Some(stack))
}

fn read(row: &mut Row) -> Result<Subscriber, StoreError> {
    Ok(Subscriber {
        id: row.take()?,
        event_types: row.take_json()?,
        filters: row.take_json_or_null()?,
        target_labels: row.take()?,
    })
}
