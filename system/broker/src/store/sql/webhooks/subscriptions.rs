//! Subscriptions. What must not be read is sealed before it comes here.

use serde_json::json;
use sindri_model::WebhookId;
use sindri_model::wire::WebhookResponse;

use crate::store::records::{Noun, Page, SealedParts, Stamp, StoreError, WebhookRecord};
use crate::store::sql::shared::audit;
use crate::store::sql::shared::idempotency as once;
use crate::store::sql::shared::lookup::{found, made};
use crate::store::sql::shared::session::{Row, Session, Value, all, any, change, json_text, one, values};

const WHAT: &str = "webhook";

/// The columns that [`read`] reads, of a query that goes on as given.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT webhooks.id, webhooks.name, webhooks.event_types, webhooks.filters, webhooks.target_labels,
                    webhooks.enabled, webhooks.max_retries, webhooks.timeout_seconds, webhooks.created_by,
                    webhooks.created_at, webhooks.updated_at, webhooks.url, webhooks.auth_header,
                    webhooks.signing_secret ",
            $rest
        )
    };
}

pub(crate) async fn create(session: &mut dyn Session, stamp: Stamp, webhook: WebhookRecord) -> Result<(), StoreError> {
    once::refuse_again(session, &stamp, WHAT).await?;
    let sql = "INSERT INTO webhooks (id, name, event_types, filters, target_labels, enabled, max_retries,
                 timeout_seconds, created_by, created_at, updated_at, url, auth_header, signing_secret)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING";
    made(change(session, sql, &row(&webhook)).await?, Noun::Webhook, &webhook.shown.name)?;
    once::remember(session, &stamp, WHAT, webhook.shown.id).await?;
    noted(session, &stamp, "webhook.created", &webhook.shown).await
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<WebhookResponse>, StoreError> {
    let sql = columns!(
        "FROM webhooks WHERE CAST(?1 AS TEXT) IS NULL
          OR (name, id) > (SELECT name, id FROM webhooks WHERE id = ?1) ORDER BY name, id LIMIT ?2"
    );
    Ok(all(session, sql, values![page.after, page.limit], read).await?.into_iter().map(|record| record.shown).collect())
}

pub(crate) async fn get(session: &mut dyn Session, webhook: WebhookId) -> Result<WebhookRecord, StoreError> {
    found(one(session, columns!("FROM webhooks WHERE id = ?1"), values![webhook], read).await?, Noun::Webhook, webhook)
}

pub(crate) async fn sample(session: &mut dyn Session) -> Result<Option<WebhookRecord>, StoreError> {
    one(session, columns!("FROM webhooks ORDER BY id LIMIT 1"), &[], read).await
}

pub(crate) async fn replace(session: &mut dyn Session, stamp: Stamp, webhook: WebhookRecord) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM webhooks WHERE name = ?1 AND id <> ?2";
    if any(session, sql, values![&webhook.shown.name, webhook.shown.id]).await? {
        return Err(StoreError::Duplicate { noun: Noun::Webhook, name: webhook.shown.name });
    }
    let sql = "UPDATE webhooks SET name = ?2, event_types = ?3, filters = ?4, target_labels = ?5, enabled = ?6,
                 max_retries = ?7, timeout_seconds = ?8, created_by = ?9, created_at = ?10, updated_at = ?11,
                 url = ?12, auth_header = ?13, signing_secret = ?14 WHERE id = ?1";
    let there = change(session, sql, &row(&webhook)).await? > 0;
    found(there.then_some(()), Noun::Webhook, webhook.shown.id)?;
    noted(session, &stamp, "webhook.updated", &webhook.shown).await
}

pub(crate) async fn delete(session: &mut dyn Session, stamp: Stamp, webhook: WebhookId) -> Result<(), StoreError> {
    let gone = get(session, webhook).await?.shown;
    change(session, "DELETE FROM deliveries WHERE webhook_id = ?1", values![webhook]).await?;
    change(session, "DELETE FROM webhooks WHERE id = ?1", values![webhook]).await?;
    noted(session, &stamp, "webhook.deleted", &gone).await
}

async fn noted(
    session: &mut dyn Session,
    stamp: &Stamp,
    action: &str,
    webhook: &WebhookResponse,
) -> Result<(), StoreError> {
    let details = json!({"name": webhook.name, "event_types": webhook.event_types, "enabled": webhook.enabled});
    audit::record(session, stamp, action, WHAT, Some(webhook.id.to_string()), Some(details)).await
}

fn row(WebhookRecord { shown, sealed }: &WebhookRecord) -> Vec<Value> {
    values![
        shown.id,
        &shown.name,
        json_text(&shown.event_types),
        shown.filters.as_ref().map(json_text),
        shown.target_labels.as_ref().map(json_text),
        shown.enabled,
        shown.max_retries,
        shown.timeout_seconds,
        shown.created_by.as_deref(),
        shown.created_at,
        shown.updated_at,
        sealed.url.clone(),
        sealed.auth_header.clone(),
        sealed.signing_secret.clone(),
    ]
    .to_vec()
}

fn read(row: &mut Row) -> Result<WebhookRecord, StoreError> {
    let mut shown = WebhookResponse {
        id: row.take()?,
        name: row.take()?,
        has_url: true,
        has_auth_header: false,
        event_types: row.json()?,
        filters: row.json_or_none()?,
        target_labels: row.json_or_none()?,
        enabled: row.take()?,
        max_retries: row.take()?,
        timeout_seconds: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    };
    let sealed = SealedParts { url: row.take()?, auth_header: row.take()?, signing_secret: row.take()? };
    shown.has_auth_header = sealed.auth_header.is_some();
    Ok(WebhookRecord { shown, sealed })
}
