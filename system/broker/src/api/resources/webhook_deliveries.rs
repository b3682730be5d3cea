//! Messages to subscribers: how they went, and those that agents send in the broker's place.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::{DeliveryResultRequest, PendingWebhookDelivery, WebhookDelivery};
use sindri_model::{AgentId, DeliveryId, WebhookId};

use super::validation::check_offset;
use super::webhooks::settings;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Asked, Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::Done;
use crate::broker::Broker;
use crate::store::{
    AcquireDeliveries, AcquiredDelivery, DeliveryAttempt, DeliveryFilter, KeyHolder, RecordKind, StoreError,
};
use crate::webhooks::sealed_parts::SealedPart;
use crate::webhooks::{Unopened, WebhookSettings};

/// How long an agent may take to send what it has taken, before another may.
const CLAIMED_FOR: Duration = Duration::from_secs(60);
/// How many messages an agent takes at once.
const CLAIMED_MAX: i64 = 100;
/// What is kept of an agent's words about a failure.
const ERROR_CHARS_MAX: usize = 1_000;

/// How a message is doing.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Status {
    Pending,
    Acquired,
    Success,
    Failed,
    Dead,
}

impl Status {
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

/// Which messages.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Which {
    /// Only those.
    status: Option<Status>,
    /// How many to leave out.
    #[serde(default)]
    offset: i64,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    Ids(webhook): Ids<WebhookId>,
    Asked(which): Asked<Which>,
    paged: Paged,
) -> Result<Listed<Vec<WebhookDelivery>>, Refusal> {
    let status = which.status.map(|status| status.as_str().to_owned());
    let filter = DeliveryFilter { webhook, status, offset: check_offset(which.offset)?, page: paged.page() };
    let deliveries = broker.store.list_deliveries(filter).await?;
    Ok(paged.listed(deliveries, |delivery| delivery.id))
}

/// Whoever asks, the messages are then the agent's to send.
pub(crate) async fn pending(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<PendingWebhookDelivery>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let (settings, at) = (settings(&broker)?, broker.clock.now());
    let until = at.saturating_add(CLAIMED_FOR).unwrap_or(at);
    let claim = AcquireDeliveries { by: agent.to_string(), at, until, limit: CLAIMED_MAX };
    let claimed = broker.store.acquire_deliveries_for_agent(agent, claim).await?;
    let opened = claimed.deliveries.into_iter().filter_map(|claimed| {
        let id = claimed.delivery.id;
        // One that does not open must not keep the others back; it is taken again later.
        opened(settings, claimed).inspect_err(|error| tracing::error!(delivery = %id, %error, "webhook")).ok()
    });
    Ok(Json(opened.collect()))
}

fn opened(settings: &WebhookSettings, claimed: AcquiredDelivery) -> Result<PendingWebhookDelivery, Unopened> {
    let AcquiredDelivery { delivery, webhook } = claimed;
    let open = |part, sealed: &[u8]| settings.open(delivery.subscription_id, part, sealed);
    let auth_header = webhook.sealed.auth_header.as_deref();
    Ok(PendingWebhookDelivery {
        id: delivery.id,
        subscription_id: delivery.subscription_id,
        url: open(SealedPart::Url, &webhook.sealed.url)?,
        auth_header: auth_header.map(|sealed| open(SealedPart::AuthHeader, sealed)).transpose()?,
        event_type: delivery.event_type,
        payload: delivery.payload.to_string(),
        timeout_seconds: webhook.public.timeout_seconds,
        max_retries: webhook.public.max_retries,
        attempts: delivery.attempts,
    })
}

/// How an agent's attempt went. Only who holds a message can say.
pub(crate) async fn result(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(delivery): Ids<DeliveryId>,
    Body(result): Body<DeliveryResultRequest>,
) -> Result<Json<Done>, Refusal> {
    let KeyHolder::Agent(agent) = actor.0 else { return Err(Refusal::forbidden()) };
    let held = broker.store.get_acquired_delivery(agent, delivery).await?;
    let (webhook, at) = (broker.store.get_webhook(held.subscription_id).await?.public, broker.clock.now());
    let next = broker.next_step(at, result.success, held.attempts + 1, webhook.max_retries);
    let error = (!result.success).then(|| words(&result));
    let settlement = DeliveryAttempt { delivery, by: agent.to_string(), at, outcome: next, error };
    if broker.store.record_delivery_attempt(settlement).await? {
        return Ok(Json(Done {}));
    }
    Err(StoreError::NotFound { kind: RecordKind::Delivery, name: delivery.to_string() }.into())
}

fn words(result: &DeliveryResultRequest) -> String {
    let said = result.error.as_deref().map(|error| error.chars().take(ERROR_CHARS_MAX).collect());
    match (said, result.status_code) {
        (Some(said), _) => said,
        (None, Some(status)) => format!("the receiver answered {status}"),
        (None, None) => "the agent did not say why".to_owned(),
    }
}
