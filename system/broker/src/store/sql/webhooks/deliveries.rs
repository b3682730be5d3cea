//! Messages to subscribers: queued with what they tell of, taken by one sender at a time, settled after each attempt.

use serde_json::json;
use sindri_model::wire::WebhookDelivery;
use sindri_model::{AgentId, DeliveryId, WebhookId};

use crate::event_types::EventType;
use crate::store::records::{
    Claim, Claimed, ClaimedDelivery, DeliveryFilter, NextStep, Noun, Settlement, Stamp, StoreError,
};
use crate::store::sql::fleet::agents;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::lookup::found;
use crate::store::sql::shared::outbox::{self as announce, Happening, Message};
use crate::store::sql::shared::session::{Row, Session, all, any, change, json_text, one, only, values};
use crate::store::sql::webhooks::subscriptions as webhooks;

/// How many ended messages of one subscription are kept.
const HISTORY_MAX: i64 = 1_000;

/// The columns that [`read`] reads.
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
    webhooks::get(session, filter.webhook).await?;
    let sql = columns!(
        "WHERE webhook_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR status = ?2)
          AND (CAST(?3 AS TEXT) IS NULL OR position < (SELECT position FROM deliveries WHERE id = ?3))
        ORDER BY position DESC LIMIT ?4 OFFSET ?5"
    );
    let page = filter.page;
    all(session, sql, values![filter.webhook, filter.status, page.after, page.limit, filter.offset], read).await
}

pub(crate) async fn queue_test(
    session: &mut dyn Session,
    stamp: Stamp,
    webhook: WebhookId,
) -> Result<DeliveryId, StoreError> {
    let shown = webhooks::get(session, webhook).await?.shown;
    let data = json!({"test": true, "webhook_id": webhook});
    let happening = Happening { event: EventType::DeploymentCreated, agent: None, stack: None, data };
    let labels = shown.target_labels.as_ref().map(json_text);
    let message = Message::new(&stamp, &happening).to(webhook, labels);
    let id = message.id;
    announce::queue(session, vec![message]).await?;
    audit::record(session, &stamp, "webhook.tested", "webhook", Some(webhook.to_string()), None).await?;
    Ok(id)
}

pub(crate) async fn claim(session: &mut dyn Session, claim: Claim) -> Result<Claimed, StoreError> {
    let sql = columns!(
        "WHERE target_labels IS NULL AND completed_at IS NULL AND due_at <= ?1
        ORDER BY due_at, position LIMIT ?2"
    );
    let due = all(session, sql, values![claim.at, claim.limit], read).await?;
    let deliveries = take(session, &claim, due).await?;
    let sql = "SELECT min(due_at) FROM deliveries WHERE target_labels IS NULL AND completed_at IS NULL";
    let next_at = one(session, sql, &[], only).await?.flatten();
    Ok(Claimed { deliveries, next_at })
}

/// An agent sends what is for one of its labels.
pub(crate) async fn claim_for_agent(
    session: &mut dyn Session,
    agent: AgentId,
    claim: Claim,
) -> Result<Claimed, StoreError> {
    agents::require(session, agent).await?;
    let sql = "SELECT label FROM agent_labels WHERE agent_id = ?1";
    let labels: Vec<String> = all(session, sql, values![agent], only).await?;
    let sql = columns!(
        "WHERE target_labels IS NOT NULL AND completed_at IS NULL AND due_at <= ?1
        ORDER BY due_at, position LIMIT 1000"
    );
    let due = all(session, sql, values![claim.at], read).await?;
    let is_theirs = |delivery: &WebhookDelivery| {
        delivery.target_labels.as_ref().is_some_and(|wanted| wanted.iter().any(|label| labels.contains(label)))
    };
    let limit = usize::try_from(claim.limit).unwrap_or_default();
    let due = due.into_iter().filter(is_theirs).take(limit).collect();
    Ok(Claimed { deliveries: take(session, &claim, due).await?, next_at: None })
}

/// Each is taken by one sender only: `due_at` is when the next one may, and the condition is checked when it is set.
async fn take(
    session: &mut dyn Session,
    claim: &Claim,
    due: Vec<WebhookDelivery>,
) -> Result<Vec<ClaimedDelivery>, StoreError> {
    let mut taken = Vec::new();
    for mut delivery in due {
        let sql = "UPDATE deliveries SET status = 'acquired', acquired_by = ?1, acquired_until = ?2, due_at = ?2
                   WHERE id = ?3 AND completed_at IS NULL AND due_at <= ?4";
        if change(session, sql, values![&claim.by, claim.until, delivery.id, claim.at]).await? == 0 {
            continue;
        }
        delivery.acquired_by = Some(claim.by.clone());
        delivery.acquired_until = Some(claim.until);
        let webhook = webhooks::get(session, delivery.subscription_id).await?;
        taken.push(ClaimedDelivery { delivery, webhook });
    }
    Ok(taken)
}

pub(crate) async fn held_by_agent(
    session: &mut dyn Session,
    agent: AgentId,
    delivery: DeliveryId,
) -> Result<WebhookDelivery, StoreError> {
    let sql = columns!("WHERE id = ?1 AND acquired_by = ?2 AND status = 'acquired'");
    found(one(session, sql, values![delivery, agent], read).await?, Noun::Delivery, delivery)
}

pub(crate) async fn settle(session: &mut dyn Session, settlement: Settlement) -> Result<bool, StoreError> {
    let (status, due_at, completed_at) = match settlement.next {
        NextStep::Done => ("success", settlement.at, Some(settlement.at)),
        NextStep::RetryAt(at) => ("failed", at, None),
        NextStep::Dead => ("dead", settlement.at, Some(settlement.at)),
    };
    let sql = "UPDATE deliveries SET status = ?1, due_at = ?2, completed_at = ?3, attempts = attempts + 1,
                 last_attempt_at = ?4, last_error = ?5, acquired_by = NULL, acquired_until = NULL
               WHERE id = ?6 AND acquired_by = ?7 AND status = 'acquired'";
    let row =
        values![status, due_at, completed_at, settlement.at, settlement.error, settlement.delivery, &settlement.by];
    let was_theirs = change(session, sql, row).await? > 0;
    if was_theirs && completed_at.is_some() {
        forget_oldest(session, settlement.delivery).await?;
    }
    Ok(was_theirs)
}

/// History is bounded; what is not ended is never forgotten.
async fn forget_oldest(session: &mut dyn Session, ended: DeliveryId) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM deliveries WHERE completed_at IS NOT NULL
                 AND webhook_id = (SELECT webhook_id FROM deliveries WHERE id = ?1) LIMIT 1 OFFSET ?2";
    if any(session, sql, values![ended, HISTORY_MAX]).await? {
        let sql = "DELETE FROM deliveries WHERE position = (
                     SELECT min(position) FROM deliveries WHERE completed_at IS NOT NULL
                       AND webhook_id = (SELECT webhook_id FROM deliveries WHERE id = ?1))";
        change(session, sql, values![ended]).await?;
    }
    Ok(())
}

fn read(row: &mut Row) -> Result<WebhookDelivery, StoreError> {
    let (id, subscription_id, event_type, event_id) = (row.take()?, row.take()?, row.take()?, row.take()?);
    let (payload, target_labels, status): (_, _, String) = (row.json()?, row.json_or_none()?, row.take()?);
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
