//! Webhook subscriptions. Their confidential parts are encrypted before they are stored.

use serde_json::json;
use sindri_model::WebhookId;
use sindri_model::wire::WebhookResponse;

use crate::store::records::{
    ChangeWebhook, EncryptedParts, Page, RecordKind, Reencrypt, StoreError, WebhookRecord, WriteContext,
};
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, execute, execute_batch, fetch_all, fetch_one};
use crate::store::sql::shared::values::{Row, Value, row, to_json, values};
use crate::store::sql::shared::{audit, idempotency};

const RESOURCE_TYPE: &str = "webhook";

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
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

pub(crate) async fn create(
    session: &mut dyn Session,
    context: WriteContext,
    webhook: WebhookRecord,
) -> Result<(), StoreError> {
    // Without the confidential parts, which are encrypted differently each time.
    let content = || json!([webhook.public.name, webhook.public.event_types, webhook.public.target_labels]);
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    idempotency::reject_repeated(session, request.as_ref()).await?;
    let sql = "INSERT INTO webhooks (id, name, event_types, filters, target_labels, enabled, max_retries,
                 timeout_seconds, created_by, created_at, updated_at, url, auth_header, signing_secret)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    execute(session, sql, &to_row(&webhook)).await?;
    idempotency::record(session, request.as_ref(), webhook.public.id).await?;
    record_audit(session, &context, "webhook.created", &webhook.public).await
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<WebhookResponse>, StoreError> {
    let sql = columns!(
        "FROM webhooks WHERE id IN (
           SELECT id FROM (
             SELECT id, sum(bytes) OVER (ORDER BY name, id) - bytes AS bytes_before FROM (
               SELECT id, name, octet_length(event_types) + coalesce(octet_length(target_labels), 0) AS bytes
               FROM webhooks WHERE CAST(?1 AS TEXT) IS NULL
                 OR (name, id) > (SELECT name, id FROM webhooks WHERE id = ?1)
               ORDER BY name, id LIMIT ?2) AS candidates) AS sized
           WHERE bytes_before < ?3)
         ORDER BY name, id"
    );
    Ok(fetch_all(session, sql, values![page.after, page.limit, Page::TEXT_BYTES_MAX], read)
        .await?
        .into_iter()
        .map(|record| record.public)
        .collect())
}

pub(crate) async fn get(session: &mut dyn Session, webhook: WebhookId) -> Result<WebhookRecord, StoreError> {
    require(
        fetch_one(session, columns!("FROM webhooks WHERE id = ?1"), values![webhook], read).await?,
        RecordKind::Webhook,
        webhook,
    )
}

pub(crate) async fn get_any(session: &mut dyn Session) -> Result<Option<WebhookRecord>, StoreError> {
    fetch_one(session, columns!("FROM webhooks ORDER BY id LIMIT 1"), &[], read).await
}

pub(crate) async fn reencrypt_all(
    session: &mut dyn Session,
    context: WriteContext,
    reencrypt: Reencrypt,
) -> Result<usize, StoreError> {
    let webhooks = fetch_all(session, columns!("FROM webhooks ORDER BY id"), &[], read).await?;
    let to_row = |webhook: &WebhookRecord| {
        let EncryptedParts { url, auth_header, signing_secret } = reencrypt(webhook)?;
        Ok(row![webhook.public.id, url, auth_header, signing_secret])
    };
    let rows = webhooks.iter().map(to_row).collect::<Result<Vec<_>, StoreError>>()?;
    let sql = "WITH batch (id, url, auth_header, signing_secret) AS ({TEXT, BYTEA, BYTEA, BYTEA})
               UPDATE webhooks SET
                 url = (SELECT batch.url FROM batch WHERE batch.id = webhooks.id),
                 auth_header = (SELECT batch.auth_header FROM batch WHERE batch.id = webhooks.id),
                 signing_secret = (SELECT batch.signing_secret FROM batch WHERE batch.id = webhooks.id)
               WHERE id IN (SELECT id FROM batch)";
    execute_batch(session, sql, rows).await?;
    let details = json!({"webhooks": webhooks.len()});
    audit::record(session, &context, "webhook.reencrypted", RESOURCE_TYPE, None, Some(details)).await?;
    Ok(webhooks.len())
}

pub(crate) async fn update(
    session: &mut dyn Session,
    context: WriteContext,
    webhook: WebhookId,
    change: ChangeWebhook,
) -> Result<WebhookResponse, StoreError> {
    // Locks the row: no other change comes between what is read and what is written back.
    let sql = "UPDATE webhooks SET updated_at = ?2 WHERE id = ?1";
    execute(session, sql, values![webhook, context.time]).await?;
    let mut record = get(session, webhook).await?;
    change(&mut record);
    record.public.has_auth_header = record.encrypted.auth_header.is_some();
    let sql = "UPDATE webhooks SET name = ?2, event_types = ?3, filters = ?4, target_labels = ?5, enabled = ?6,
                 max_retries = ?7, timeout_seconds = ?8, created_by = ?9, created_at = ?10, updated_at = ?11,
                 url = ?12, auth_header = ?13, signing_secret = ?14 WHERE id = ?1";
    execute(session, sql, &to_row(&record)).await?;
    let sql = "UPDATE deliveries SET target_labels = ?2 WHERE webhook_id = ?1 AND completed_at IS NULL";
    let labels = record.public.target_labels.as_ref().map(to_json);
    execute(session, sql, values![webhook, labels]).await?;
    record_audit(session, &context, "webhook.updated", &record.public).await?;
    Ok(record.public)
}

pub(crate) async fn delete(
    session: &mut dyn Session,
    context: WriteContext,
    webhook: WebhookId,
) -> Result<(), StoreError> {
    let deleted = get(session, webhook).await?.public;
    execute(session, "DELETE FROM deliveries WHERE webhook_id = ?1", values![webhook]).await?;
    execute(session, "DELETE FROM webhooks WHERE id = ?1", values![webhook]).await?;
    record_audit(session, &context, "webhook.deleted", &deleted).await
}

async fn record_audit(
    session: &mut dyn Session,
    context: &WriteContext,
    action: &str,
    webhook: &WebhookResponse,
) -> Result<(), StoreError> {
    let details = json!({"name": webhook.name, "event_types": webhook.event_types, "enabled": webhook.enabled});
    audit::record(session, context, action, RESOURCE_TYPE, Some(webhook.id.to_string()), Some(details)).await
}

fn to_row(WebhookRecord { public, encrypted }: &WebhookRecord) -> Vec<Value> {
    values![
        public.id,
        &public.name,
        to_json(&public.event_types),
        public.filters.as_ref().map(to_json),
        public.target_labels.as_ref().map(to_json),
        public.enabled,
        public.max_retries,
        public.timeout_seconds,
        public.created_by.as_deref(),
        public.created_at,
        public.updated_at,
        encrypted.url.clone(),
        encrypted.auth_header.clone(),
        encrypted.signing_secret.clone(),
    ]
    .to_vec()
}

fn read(row: &mut Row) -> Result<WebhookRecord, StoreError> {
    let mut public = WebhookResponse {
        id: row.take()?,
        name: row.take()?,
        has_url: true,
        has_auth_header: false,
        event_types: row.take_json()?,
        filters: row.take_json_or_null()?,
        target_labels: row.take_json_or_null()?,
        enabled: row.take()?,
        max_retries: row.take()?,
        timeout_seconds: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
    };
    let encrypted = EncryptedParts { url: row.take()?, auth_header: row.take()?, signing_secret: row.take()? };
    public.has_auth_header = encrypted.auth_header.is_some();
    Ok(WebhookRecord { public, encrypted })
}
