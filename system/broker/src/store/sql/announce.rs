//! Tells subscribers what happened: a message each, written in the transaction in which it happens.

use serde_json::{Value as Json, json};
use sindri_model::wire::WebhookFilters;
use sindri_model::{AgentId, DeliveryId, EventId, StackId, WebhookId};

use super::epoch;
use super::session::{Row, Session, all, change, values};
use crate::store::{Stamp, StoreError};
use crate::webhooks::subscription::{EventType, Patterns};

/// Something that happened.
pub(super) struct Happening {
    pub event: EventType,
    pub agent: Option<AgentId>,
    pub stack: Option<StackId>,
    pub data: Json,
}

struct Subscriber {
    id: WebhookId,
    event_types: Vec<String>,
    filters: Option<WebhookFilters>,
    target_labels: Option<String>,
}

pub(super) async fn announce(session: &mut dyn Session, stamp: &Stamp, happening: Happening) -> Result<(), StoreError> {
    let sql = "SELECT id, event_types, filters, target_labels FROM webhooks WHERE enabled = 1 ORDER BY id";
    let subscribers = all(session, sql, &[], read).await?;
    let wanted: Vec<_> = subscribers.into_iter().filter(|subscriber| is_wanted(subscriber, &happening)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let event = EventId::mint(&stamp.entropy);
    let message = message(stamp, event, &happening);
    for subscriber in wanted {
        let id = DeliveryId::mint(&stamp.entropy);
        queue(session, stamp, id, event, (subscriber.id, subscriber.target_labels), happening.event, &message).await?;
    }
    Ok(())
}

/// What a subscriber gets to read.
pub(super) fn message(stamp: &Stamp, event: EventId, happening: &Happening) -> String {
    let message = json!({
        "id": event,
        "event_type": happening.event.as_str(),
        "timestamp": stamp.at,
        "data": happening.data,
    });
    message.to_string()
}

/// Writes one message to one subscriber.
pub(super) async fn queue(
    session: &mut dyn Session,
    stamp: &Stamp,
    id: DeliveryId,
    event: EventId,
    (subscriber, target_labels): (WebhookId, Option<String>),
    event_type: EventType,
    message: &str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO deliveries (id, webhook_id, event_type, event_id, payload, target_labels, status, attempts,
                 due_at, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', 0, ?7, ?7)";
    let row = values![id, subscriber, event_type.as_str(), event, message, target_labels, stamp.at];
    change(session, sql, row).await?;
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
