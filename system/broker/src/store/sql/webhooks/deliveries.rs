//! Messages to webhook subscribers: acquired by one sender at a time, updated after each attempt to send.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sindri_model::wire::WebhookDelivery;
use sindri_model::{AgentId, DeliveryId, WebhookId};

use super::subscriptions;
use crate::event_types::EventType;
use crate::store::records::{
    AcquireDeliveries, AcquiredDeliveries, AcquiredDelivery, AttemptOutcome, DeliveryAttempt, DeliveryFilter, Page,
    RecordKind, StoreError, WriteContext,
};
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::outbox::{Message, WebhookEvent};
use crate::store::sql::shared::session::{
    PipelinedQuery, Session, execute, failed, fetch_all, fetch_one, has_rows, read_all, single_column,
};
use crate::store::sql::shared::values::{Row, row, to_json, values};
use crate::store::sql::shared::{audit, outbox};
use crate::store::sql::tables::agents;

/// Time for which a message waits: for its receiver, for an agent that sends it, or until its subscription is enabled.
pub(crate) const WAIT_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Number of completed messages of one subscription that are kept.
const HISTORY_MAX: i64 = 1_000;

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, webhook_id, event_type, event_id, payload, target_labels, status, acquired_by, acquired_until,
                    attempts, last_attempt_at, due_at, last_error, created_at, completed_at FROM deliveries ",
            $rest
        )
    };
}

pub(crate) async fn list(
    session: &mut dyn Session,
    filter: DeliveryFilter,
) -> Result<Vec<WebhookDelivery>, StoreError> {
    subscriptions::get(session, filter.webhook).await?;
    let sql = columns!(
        "WHERE position IN (
            SELECT position FROM (
              SELECT position, sum(bytes) OVER (ORDER BY position DESC) - bytes AS bytes_before FROM (
                SELECT position, octet_length(payload) AS bytes FROM deliveries
                WHERE webhook_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR status = ?2)
                  AND (CAST(?3 AS TEXT) IS NULL OR position < (SELECT position FROM deliveries WHERE id = ?3))
                ORDER BY position DESC LIMIT ?4 OFFSET ?5) AS candidates) AS sized
            WHERE bytes_before < ?6)
          ORDER BY position DESC"
    );
    let DeliveryFilter { webhook, status, offset, page } = filter;
    let values = values![webhook, status, page.after, page.limit, offset, Page::TEXT_BYTES_MAX];
    fetch_all(session, sql, values, read).await
}

pub(crate) async fn queue_test(
    session: &mut dyn Session,
    context: WriteContext,
    webhook: WebhookId,
) -> Result<DeliveryId, StoreError> {
    let subscription = subscriptions::get(session, webhook).await?.public;
    let data = json!({"test": true, "webhook_id": webhook});
    let event = WebhookEvent { event_type: EventType::DeploymentCreated, agent: None, stack: None, data };
    let labels = subscription.target_labels.as_ref().map(to_json);
    let message = Message::new(&context, &event).address_to(webhook, labels);
    let id = message.id;
    outbox::queue(session, vec![message]).await?;
    audit::record(session, &context, "webhook.tested", "webhook", Some(webhook.to_string()), None).await?;
    Ok(id)
}

/// The broker sends messages of subscriptions without target labels.
pub(crate) async fn acquire(
    session: &mut dyn Session,
    request: AcquireDeliveries,
) -> Result<AcquiredDeliveries, StoreError> {
    let mut queues = list_queues(session).await?;
    queues.retain(|queue| queue.target_labels.is_none());
    acquire_from(session, request, queues).await
}

/// An agent sends messages of subscriptions whose target labels include one of its own.
pub(crate) async fn acquire_for_agent(
    session: &mut dyn Session,
    agent: AgentId,
    request: AcquireDeliveries,
) -> Result<AcquiredDeliveries, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = "SELECT label FROM agent_labels WHERE agent_id = ?1";
    let labels: Vec<String> = fetch_all(session, sql, values![agent], single_column).await?;
    let mut queues = list_queues(session).await?;
    queues.retain(|queue| queue.target_labels.iter().flatten().any(|label| labels.contains(label)));
    acquire_from(session, request, queues).await
}

/// Messages of one enabled subscription that wait.
struct Queue {
    webhook: WebhookId,
    target_labels: Option<Vec<String>>,
    /// Time at which the first of them is due.
    next_at: Timestamp,
}

async fn list_queues(session: &mut dyn Session) -> Result<Vec<Queue>, StoreError> {
    let sql = "SELECT webhooks.id, webhooks.target_labels, queued.next_at FROM webhooks JOIN (
                 SELECT webhooks.id, (
                   SELECT min(due_at) FROM deliveries WHERE webhook_id = webhooks.id AND completed_at IS NULL) AS next_at
                 FROM webhooks WHERE enabled = 1) AS queued ON queued.id = webhooks.id
               WHERE queued.next_at IS NOT NULL ORDER BY queued.next_at, webhooks.id";
    let read = |row: &mut Row| {
        Ok(Queue { webhook: row.take()?, target_labels: row.take_json_or_null()?, next_at: row.take()? })
    };
    fetch_all(session, sql, &[], read).await
}

/// Acquires messages that are due: the first of each queue, then the second of each, and so on.
async fn acquire_from(
    session: &mut dyn Session,
    request: AcquireDeliveries,
    mut queues: Vec<Queue>,
) -> Result<AcquiredDeliveries, StoreError> {
    queues.retain(|queue| !request.busy.contains(&queue.webhook));
    // Queues are in the order of this time.
    let next_at = queues.first().map(|queue| queue.next_at);
    queues.retain(|queue| queue.next_at <= request.now);
    queues.truncate(request.limit);
    let each = i64::try_from(request.limit_each).map_err(failed)?;
    let sql =
        columns!("WHERE webhook_id = ?1 AND completed_at IS NULL AND due_at <= ?2 ORDER BY due_at, position LIMIT ?3");
    let queries = queues.iter().map(|queue| PipelinedQuery::Single(sql, row![queue.webhook, request.now, each]));
    let queued = session.query_pipelined(queries.collect()).await?;
    let mut due = Vec::new();
    for rows in queued {
        due.extend(read_all(rows, read)?.into_iter().enumerate());
    }
    due.sort_by_key(|(place, _)| *place);
    let due = due.into_iter().map(|(_, delivery)| delivery).take(request.limit).collect();
    Ok(AcquiredDeliveries { deliveries: acquire_each(session, &request, due).await?, next_at })
}

/// Acquires each message unless another sender has: `due_at` is the time from which the next sender may, and the
/// statement that sets it checks it.
async fn acquire_each(
    session: &mut dyn Session,
    request: &AcquireDeliveries,
    due: Vec<WebhookDelivery>,
) -> Result<Vec<AcquiredDelivery>, StoreError> {
    let (mut acquired, mut webhooks) = (Vec::new(), BTreeMap::new());
    for mut delivery in due {
        let sql = "UPDATE deliveries SET status = 'acquired', acquired_by = ?1, acquired_until = ?2, due_at = ?2
                   WHERE id = ?3 AND completed_at IS NULL AND due_at <= ?4";
        if execute(session, sql, values![&request.sender, request.until, delivery.id, request.now]).await? == 0 {
            continue;
        }
        delivery.acquired_by = Some(request.sender.clone());
        delivery.acquired_until = Some(request.until);
        let webhook = match webhooks.entry(delivery.subscription_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(subscriptions::get(session, delivery.subscription_id).await?),
        };
        acquired.push(AcquiredDelivery { delivery, webhook: webhook.clone() });
    }
    Ok(acquired)
}

pub(crate) async fn get_acquired(
    session: &mut dyn Session,
    agent: AgentId,
    delivery: DeliveryId,
) -> Result<WebhookDelivery, StoreError> {
    let sql = columns!("WHERE id = ?1 AND acquired_by = ?2 AND status = 'acquired'");
    require(fetch_one(session, sql, values![delivery, agent], read).await?, RecordKind::Delivery, delivery)
}

pub(crate) async fn record_attempt(session: &mut dyn Session, attempt: DeliveryAttempt) -> Result<bool, StoreError> {
    let (status, due_at, completed_at) = match attempt.outcome {
        AttemptOutcome::Delivered => ("success", attempt.ended_at, Some(attempt.ended_at)),
        AttemptOutcome::RetryAt(at) => ("failed", at, None),
        AttemptOutcome::Abandoned => ("dead", attempt.ended_at, Some(attempt.ended_at)),
    };
    let sql = "UPDATE deliveries SET status = ?1, due_at = ?2, completed_at = ?3, attempts = attempts + 1,
                 last_attempt_at = ?4, last_error = ?5, acquired_by = NULL, acquired_until = NULL
               WHERE id = ?6 AND acquired_by = ?7 AND status = 'acquired'";
    let row = values![status, due_at, completed_at, attempt.ended_at, attempt.error, attempt.delivery, &attempt.sender];
    let was_acquired = execute(session, sql, row).await? > 0;
    if was_acquired && completed_at.is_some() {
        delete_oldest(session, attempt.delivery).await?;
    }
    Ok(was_acquired)
}

/// Abandons messages that are older than this and not delivered, and returns their number.
pub(crate) async fn abandon_old(session: &mut dyn Session, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
    let sql =
        "UPDATE deliveries SET status = 'dead', completed_at = created_at + ?4, last_error = ?3, acquired_by = NULL,
                 acquired_until = NULL
               WHERE position IN (
                 SELECT position FROM deliveries WHERE completed_at IS NULL AND created_at < ?1
                 ORDER BY position LIMIT ?2)
               RETURNING id";
    let wait = i64::try_from(WAIT_MAX.as_micros()).map_err(failed)?;
    let values = values![before, limit, "it was not delivered within seven days", wait];
    let abandoned: Vec<DeliveryId> = fetch_all(session, sql, values, single_column).await?;
    for delivery in &abandoned {
        delete_oldest(session, *delivery).await?;
    }
    u64::try_from(abandoned.len()).map_err(failed)
}

/// Deletes the oldest completed message of a subscription that has too many. Messages that are not completed stay.
async fn delete_oldest(session: &mut dyn Session, completed: DeliveryId) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM deliveries WHERE completed_at IS NOT NULL
                 AND webhook_id = (SELECT webhook_id FROM deliveries WHERE id = ?1) LIMIT 1 OFFSET ?2";
    if has_rows(session, sql, values![completed, HISTORY_MAX]).await? {
        let sql = "DELETE FROM deliveries WHERE position = (
                     SELECT min(position) FROM deliveries WHERE completed_at IS NOT NULL
                       AND webhook_id = (SELECT webhook_id FROM deliveries WHERE id = ?1))";
        execute(session, sql, values![completed]).await?;
    }
    Ok(())
}

fn read(row: &mut Row) -> Result<WebhookDelivery, StoreError> {
    let (id, subscription_id, event_type, event_id) = (row.take()?, row.take()?, row.take()?, row.take()?);
    let (payload, target_labels, status): (_, _, String) = (row.take_json()?, row.take_json_or_null()?, row.take()?);
    let (acquired_by, acquired_until, attempts) = (row.take()?, row.take()?, row.take()?);
    let (last_attempt_at, due_at) = (row.take()?, row.take()?);
    let next_retry_at = (status == "failed").then_some(due_at);
    Ok(WebhookDelivery {
        id,
        subscription_id,
        event_type,
        event_id,
        payload,
        target_labels,
        status,
        acquired_by,
        acquired_until,
        attempts,
        last_attempt_at,
        next_retry_at,
        last_error: row.take()?,
        created_at: row.take()?,
        completed_at: row.take()?,
    })
}
