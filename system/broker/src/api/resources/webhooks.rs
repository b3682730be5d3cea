//! Subscriptions to what happens. What is secret in them goes in, sealed, and never comes out again.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use schemars::SchemaGenerator;
use serde_json::json;
use sindri_model::WebhookId;
use sindri_model::wire::{
    CreateWebhookRequest, TestWebhookResponse, UpdateWebhookRequest, WebhookFilters, WebhookResponse,
};

use super::webhook_validation::{
    check_auth_header, check_event_types, check_labels, check_name, check_retries, check_timeout, check_url,
    read_secret,
};
use crate::api::http::describe::{Answer, Operation};
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::event_types::EventType;
use crate::store::{SealedParts, StoreError, WebhookRecord, WriteContext};
use crate::webhooks::WebhookSettings;
use crate::webhooks::schedule::RETRIES_DEFAULT;
use crate::webhooks::sealed_parts::SealedPart;
use crate::webhooks::signature::Secret;

/// Shows a secret that the broker made, this once.
const SECRET_HEADER: HeaderName = HeaderName::from_static("x-sindri-signing-secret");
const TIMEOUT_SECONDS_DEFAULT: i64 = 30;

/// A new subscription, with its secret if the broker made it.
pub(crate) struct CreatedWebhook {
    webhook: WebhookResponse,
    minted: Option<Secret>,
}

impl IntoResponse for CreatedWebhook {
    fn into_response(self) -> Response {
        let mut response = Created(self.webhook).into_response();
        let shown = self.minted.and_then(|secret| HeaderValue::try_from(secret.reveal()).ok());
        if let Some(mut shown) = shown {
            shown.set_sensitive(true);
            response.headers_mut().insert(SECRET_HEADER, shown);
        }
        response
    }
}

impl Answer for CreatedWebhook {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        Created::<WebhookResponse>::tell(operation, schemas);
        if let Some(answer) = operation.answers.get_mut(&201) {
            let description = "The secret that signs messages, if none was given. It is not shown again.";
            answer["headers"] =
                json!({SECRET_HEADER.as_str(): {"description": description, "schema": {"type": "string"}}});
        }
    }
}

pub(crate) async fn create(
    State(broker): State<Broker>,
    By(stamp): By,
    Body(request): Body<CreateWebhookRequest>,
) -> Result<CreatedWebhook, Refusal> {
    let settings = settings(&broker)?;
    let given = request.signing_secret.as_deref().map(read_secret).transpose()?;
    let (secret, is_minted) = match given {
        Some(secret) => (secret, false),
        None => (Secret::mint(&broker.entropy), true),
    };
    let (id, request) = (WebhookId::mint(&broker.entropy), checked(&broker, settings, request).await?);
    let seal = |part, plain: &str| settings.seal(&broker.entropy, id, part, plain);
    let sealed = SealedParts {
        url: seal(SealedPart::Url, &request.url),
        auth_header: request.auth_header.as_deref().map(|header| seal(SealedPart::AuthHeader, header)),
        signing_secret: seal(SealedPart::SigningSecret, &secret.reveal()),
    };
    let webhook = shown(id, request, &stamp);
    broker.store.create_webhook(stamp, WebhookRecord { public: webhook.clone(), sealed }).await?;
    Ok(CreatedWebhook { webhook, minted: is_minted.then_some(secret) })
}

async fn checked(
    broker: &Broker,
    settings: &WebhookSettings,
    mut request: CreateWebhookRequest,
) -> Result<CreateWebhookRequest, Refusal> {
    check_name(&request.name)?;
    check_url(&request.url, settings.policy)?;
    check_event_types(&request.event_types)?;
    request.auth_header = request.auth_header.filter(|header| !header.is_empty());
    request.auth_header.as_deref().map_or(Ok(()), check_auth_header)?;
    request.target_labels = request.target_labels.filter(|labels| !labels.is_empty());
    request.target_labels.as_deref().map_or(Ok(()), check_labels)?;
    request.max_retries.map_or(Ok(()), check_retries)?;
    request.timeout_seconds.map_or(Ok(()), check_timeout)?;
    check_filters(broker, request.filters.as_ref()).await?;
    Ok(request)
}

fn shown(id: WebhookId, request: CreateWebhookRequest, stamp: &WriteContext) -> WebhookResponse {
    WebhookResponse {
        id,
        name: request.name,
        has_url: true,
        has_auth_header: request.auth_header.is_some(),
        event_types: request.event_types,
        filters: request.filters,
        target_labels: request.target_labels,
        enabled: true,
        max_retries: request.max_retries.unwrap_or(i64::from(RETRIES_DEFAULT)),
        timeout_seconds: request.timeout_seconds.unwrap_or(TIMEOUT_SECONDS_DEFAULT),
        created_by: Some("admin".to_owned()),
        created_at: stamp.at,
        updated_at: stamp.at,
    }
}

/// What a subscription is narrowed to must exist.
async fn check_filters(broker: &Broker, filters: Option<&WebhookFilters>) -> Result<(), Refusal> {
    let Some(filters) = filters else { return Ok(()) };
    if let Some(agent) = filters.agent_id {
        broker.store.get_agent(agent).await.map_err(as_reference)?;
    }
    if let Some(stack) = filters.stack_id {
        broker.store.get_stack(stack).await.map_err(as_reference)?;
    }
    Ok(())
}

/// What a body names is no part of the address.
fn as_reference(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound { kind, name } => StoreError::MissingReference { kind, name },
        other => other,
    }
}

/// Without a key nothing can be sealed, so nothing is taken.
pub(crate) fn settings(broker: &Broker) -> Result<&WebhookSettings, Refusal> {
    broker.webhooks.as_ref().ok_or_else(|| {
        let message = "webhooks need an encryption key: set webhooks.encryption_key_file";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "webhooks_not_configured", message)
    })
}

pub(crate) async fn list(State(broker): State<Broker>, paged: Paged) -> Result<Listed<Vec<WebhookResponse>>, Refusal> {
    let webhooks = broker.store.list_webhooks(paged.page()).await?;
    Ok(paged.listed(webhooks, |webhook| webhook.id))
}

pub(crate) async fn event_types() -> Json<Vec<&'static str>> {
    Json(EventType::ALL.iter().map(|event| event.as_str()).collect())
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    Ids(webhook): Ids<WebhookId>,
) -> Result<Json<WebhookResponse>, Refusal> {
    Ok(Json(broker.store.get_webhook(webhook).await?.public))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    Ids(webhook): Ids<WebhookId>,
    By(stamp): By,
    Body(changes): Body<UpdateWebhookRequest>,
) -> Result<Json<WebhookResponse>, Refusal> {
    let settings = settings(&broker)?;
    check_filters(&broker, changes.filters.as_ref()).await?;
    let mut record = broker.store.get_webhook(webhook).await?;
    change_sealed(&broker, settings, &mut record, &changes)?;
    change_shown(&mut record.public, changes)?;
    record.public.updated_at = stamp.at;
    broker.store.replace_webhook(stamp, record.clone()).await?;
    Ok(Json(record.public))
}

fn change_sealed(
    broker: &Broker,
    settings: &WebhookSettings,
    record: &mut WebhookRecord,
    changes: &UpdateWebhookRequest,
) -> Result<(), Refusal> {
    let seal = |part, plain: &str| settings.seal(&broker.entropy, record.public.id, part, plain);
    if let Some(url) = &changes.url {
        check_url(url, settings.policy)?;
        record.sealed.url = seal(SealedPart::Url, url);
    }
    match changes.auth_header.as_deref() {
        None => {}
        Some("") => record.sealed.auth_header = None,
        Some(header) => {
            check_auth_header(header)?;
            record.sealed.auth_header = Some(seal(SealedPart::AuthHeader, header));
        }
    }
    record.public.has_auth_header = record.sealed.auth_header.is_some();
    Ok(())
}

fn change_shown(shown: &mut WebhookResponse, changes: UpdateWebhookRequest) -> Result<(), Refusal> {
    if let Some(name) = changes.name {
        check_name(&name)?;
        shown.name = name;
    }
    if let Some(event_types) = changes.event_types {
        check_event_types(&event_types)?;
        shown.event_types = event_types;
    }
    if let Some(labels) = changes.target_labels {
        check_labels(&labels)?;
        shown.target_labels = Some(labels).filter(|labels| !labels.is_empty());
    }
    if let Some(filters) = changes.filters {
        shown.filters = Some(filters).filter(|filters| *filters != WebhookFilters::default());
    }
    changes.max_retries.map_or(Ok(()), check_retries)?;
    changes.timeout_seconds.map_or(Ok(()), check_timeout)?;
    shown.max_retries = changes.max_retries.unwrap_or(shown.max_retries);
    shown.timeout_seconds = changes.timeout_seconds.unwrap_or(shown.timeout_seconds);
    shown.enabled = changes.enabled.unwrap_or(shown.enabled);
    Ok(())
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    Ids(webhook): Ids<WebhookId>,
    By(stamp): By,
) -> Result<NoContent, Refusal> {
    broker.store.delete_webhook(stamp, webhook).await?;
    Ok(NoContent)
}

pub(crate) async fn test(
    State(broker): State<Broker>,
    Ids(webhook): Ids<WebhookId>,
    By(stamp): By,
) -> Result<Json<TestWebhookResponse>, Refusal> {
    Ok(Json(TestWebhookResponse { delivery_id: broker.store.queue_test_delivery(stamp, webhook).await? }))
}
