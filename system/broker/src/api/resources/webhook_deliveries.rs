//! Webhook deliveries: their history, and those that agents send in place of the broker.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::{DeliveryResultRequest, PendingWebhookDelivery, WebhookDelivery};
use sindri_model::{AgentId, DeliveryId, WebhookId};

use super::validation::check_offset;
use super::webhooks::require_settings;
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams, QueryParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::EmptyObject;
use crate::broker::Broker;
use crate::store::{
    AcquireDeliveries, AcquiredDelivery, DeliveryAttempt, DeliveryFilter, KeyHolder, RecordKind, StoreError,
};
use crate::webhooks::encrypted_parts::EncryptedPart;
use crate::webhooks::{DecryptionError, WebhookSettings};

/// Time for which a delivery is reserved for the agent that acquired it.
const ACQUIRE_TIME: Duration = Duration::from_secs(60);
/// Limit on the deliveries of one request.
const ACQUIRED_MAX: usize = 100;
/// Length to which the error of an agent is cut.
const ERROR_CHARS_MAX: usize = 1_000;

/// Status of a delivery.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum DeliveryStatus {
    Pending,
    Acquired,
    Success,
    Failed,
    Dead,
}

impl DeliveryStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Acquired => "acquired",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }
}

/// Filter of deliveries.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeliveryParams {
    /// Only deliveries with this status.
    status: Option<DeliveryStatus>,
    /// Number of deliveries to skip.
    #[serde(default)]
    #[schemars(range(min = 0))]
    offset: i64,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    PathParams(webhook): PathParams<WebhookId>,
    QueryParams(query): QueryParams<DeliveryParams>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<WebhookDelivery>>, ErrorResponse> {
    let status = query.status.map(|status| status.as_str().to_owned());
    let filter = DeliveryFilter { webhook, status, offset: check_offset(query.offset)?, page: params.page() };
    let deliveries = broker.store.list_deliveries(filter).await?;
    permit
        .serialize(
            &broker,
            params.respond_sized(deliveries, |delivery| delivery.id, |delivery| delivery.payload.to_string().len()),
        )
        .await
}

/// Acquires deliveries for the agent, also if the administrator sends the request.
pub(crate) async fn acquire(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
) -> Result<Json<Vec<PendingWebhookDelivery>>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let (settings, now) = (require_settings(&broker)?, broker.clock.now());
    let until = now.saturating_add(ACQUIRE_TIME).unwrap_or(now);
    let busy = BTreeSet::new();
    let (limit, limit_each) = (ACQUIRED_MAX, ACQUIRED_MAX);
    let request = AcquireDeliveries { sender: agent.to_string(), now, until, limit, limit_each, busy };
    let acquired = broker.store.acquire_deliveries_for_agent(agent, request).await?;
    let decrypted = acquired.deliveries.into_iter().filter_map(|acquired| {
        let id = acquired.delivery.id;
        // A delivery that cannot be decrypted must not block the others; it is acquired again later.
        decrypt_delivery(settings, acquired)
            .inspect_err(
                |error| tracing::error!(delivery = %id, %error, "the webhook of a delivery cannot be decrypted"),
            )
            .ok()
    });
    Ok(Json(decrypted.collect()))
}

fn decrypt_delivery(
    settings: &WebhookSettings,
    acquired: AcquiredDelivery,
) -> Result<PendingWebhookDelivery, DecryptionError> {
    let AcquiredDelivery { delivery, webhook } = acquired;
    let decrypt = |part, encrypted: &[u8]| settings.decrypt(delivery.subscription_id, part, encrypted);
    let auth_header = webhook.encrypted.auth_header.as_deref();
    Ok(PendingWebhookDelivery {
        id: delivery.id,
        subscription_id: delivery.subscription_id,
        url: decrypt(EncryptedPart::Url, &webhook.encrypted.url)?,
        auth_header: auth_header.map(|encrypted| decrypt(EncryptedPart::AuthHeader, encrypted)).transpose()?,
        event_type: delivery.event_type,
        payload: delivery.payload.to_string(),
        timeout_seconds: webhook.public.timeout_seconds,
        max_retries: webhook.public.max_retries,
        attempts: delivery.attempts,
    })
}

/// Records the result of an agent's attempt. Only the agent that acquired the delivery may report it.
pub(crate) async fn report_result(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(delivery): PathParams<DeliveryId>,
    JsonBody(result): JsonBody<DeliveryResultRequest>,
) -> Result<Json<EmptyObject>, ErrorResponse> {
    let KeyHolder::Agent(agent) = actor.holder else { return Err(Denial::AgentPakRequired.into()) };
    let acquired = broker.store.get_acquired_delivery(agent, delivery).await?;
    let (webhook, ended_at) = (broker.store.get_webhook(acquired.subscription_id).await?.public, broker.clock.now());
    let outcome = broker.decide_outcome(ended_at, result.success, acquired.attempts + 1, webhook.max_retries);
    let error = (!result.success).then(|| describe_failure(&result));
    let attempt = DeliveryAttempt { delivery, sender: agent.to_string(), ended_at, outcome, error };
    if broker.store.record_delivery_attempt(attempt).await? {
        return Ok(Json(EmptyObject {}));
    }
    Err(StoreError::NotFound { kind: RecordKind::Delivery, name: delivery.to_string() }.into())
}

fn describe_failure(result: &DeliveryResultRequest) -> String {
    let reported = result.error.as_deref().map(|error| error.chars().take(ERROR_CHARS_MAX).collect());
    match (reported, result.status_code) {
        (Some(reported), _) => reported,
        (None, Some(status)) => format!("the receiver responded with status {status}"),
        (None, None) => "the agent reported no reason".to_owned(),
    }
}
