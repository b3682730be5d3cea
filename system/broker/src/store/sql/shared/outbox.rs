//! Tells subscribers what happened: a message each, written in the transaction in which it happens.

use serde_json::{Value as Json, json};
use sindri_model::wire::WebhookFilters;
use sindri_model::{AgentId, DeliveryId, EventId, StackId, WebhookId};

use crate::event_types::{EventType, Patterns};
use crate::store::records::{Stamp, StoreError};
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::session::{Question, Row, Session, Value, all, change_each, read_all, row};

/// Something that happened.
pub(crate) struct Happening {
    pub event: EventType,
    pub agent: Option<AgentId>,
    pub stack: Option<StackId>,
    pub data: Json,
}

/// Who is told of some happenings.
pub(crate) struct Subscriber {
    id: WebhookId,
    event_types: Vec<String>,
    filters: Option<WebhookFilters>,
    target_labels: Option<String>,
}

const SUBSCRIBERS: &str = "SELECT id, event_types, filters, target_labels FROM webhooks WHERE enabled = 1 ORDER BY id";

pub(crate) async fn announce(session: &mut dyn Session, stamp: &Stamp, happening: Happening) -> Result<(), StoreError> {
    announce_all(session, &[(stamp, happening)]).await
}

pub(crate) async fn announce_all(
    session: &mut dyn Session,
    happenings: &[(&Stamp, Happening)],
) -> Result<(), StoreError> {
    let subscribers = all(session, SUBSCRIBERS, &[], read).await?;
    announce_to(session, &subscribers, happenings).await
}

/// Asks who is told what.
pub(crate) fn ask_subscribers() -> Question {
    Question::Once(SUBSCRIBERS, Vec::new())
}

pub(crate) fn read_subscribers(rows: Vec<Row>) -> Result<Vec<Subscriber>, StoreError> {
    read_all(rows, read)
}

/// The same, when it is known who is told.
pub(crate) async fn announce_to(
    session: &mut dyn Session,
    subscribers: &[Subscriber],
    happenings: &[(&Stamp, Happening)],
) -> Result<(), StoreError> {
    let mut messages = Vec::new();
    for (stamp, happening) in happenings {
        let mut wanted = subscribers.iter().filter(|subscriber| is_wanted(subscriber, happening)).peekable();
        if wanted.peek().is_some() {
            let message = Message::new(stamp, happening);
            messages.extend(wanted.map(|subscriber| message.to(subscriber.id, subscriber.target_labels.clone())));
        }
    }
    queue(session, messages).await
}

/// What subscribers get to read of one happening.
pub(crate) struct Message<'a> {
    stamp: &'a Stamp,
    event: EventId,
    event_type: EventType,
    text: String,
}

/// A message to one subscriber, as its row.
pub(crate) struct Addressed {
    pub id: DeliveryId,
    row: Vec<Value>,
}

impl<'a> Message<'a> {
    pub(crate) fn new(stamp: &'a Stamp, happening: &Happening) -> Self {
        let event = EventId::mint_at(stamp.at, &stamp.entropy);
        let text = json!({
            "id": event,
            "event_type": happening.event.as_str(),
            "timestamp": stamp.at,
            "data": happening.data,
        });
        Self { stamp, event, event_type: happening.event, text: text.to_string() }
    }

    pub(crate) fn to(&self, subscriber: WebhookId, target_labels: Option<String>) -> Addressed {
        let id = DeliveryId::mint_at(self.stamp.at, &self.stamp.entropy);
        let (event_type, at) = (self.event_type.as_str(), self.stamp.at);
        Addressed { id, row: row![id, subscriber, event_type, self.event, &self.text, target_labels, at] }
    }
}

/// Writes messages to their subscribers.
pub(crate) async fn queue(session: &mut dyn Session, messages: Vec<Addressed>) -> Result<(), StoreError> {
    if messages.is_empty() {
        return Ok(());
    }
    let sql = "WITH batch (id, webhook_id, event_type, event_id, payload, target_labels, at)
                 AS ({TEXT, TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT})
               INSERT INTO deliveries (id, webhook_id, event_type, event_id, payload, target_labels, status, attempts,
                 due_at, created_at)
               SELECT id, webhook_id, event_type, event_id, payload, target_labels, 'pending', 0, at, at FROM batch";
    change_each(session, sql, messages.into_iter().map(|message| message.row).collect()).await?;
    epoch::deliveries_changed(session);
    Ok(())
}

fn is_wanted(subscriber: &Subscriber, happening: &Happening) -> bool {
    let filters = subscriber.filters.as_ref();
    Patterns::parse(&subscriber.event_types).is_ok_and(|patterns| patterns.match_type(happening.event))
        && filters.and_then(|filters| filters.agent_id).is_none_or(|agent| happening.agent == Some(agent))
        && filters.and_then(|filters| filters.stack_id).is_none_or(|stack| happening.stack == Some(stack))
}

fn read(row: &mut Row) -> Result<Subscriber, StoreError> {
    Ok(Subscriber {
        id: row.take()?,
        event_types: row.json()?,
        filters: row.json_or_none()?,
        target_labels: row.take()?,
    })
}
