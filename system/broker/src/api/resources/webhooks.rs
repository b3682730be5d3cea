//! Webhook subscriptions. Their confidential parts are stored encrypted and never returned.

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

use super::validation::check_optional;
use super::webhook_validation::{
    check_auth_header, check_event_types, check_labels, check_name, check_retries, check_timeout, check_url,
    parse_secret,
};
use crate::api::http::describe::{DescribeResponse, Operation};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::{CreateContext, UnrepeatableContext};
use crate::broker::Broker;
use crate::event_types::EventType;
use crate::store::{EncryptedParts, KeyHolder, StoreError, WebhookRecord, WriteContext};
use crate::webhooks::WebhookSettings;
use crate::webhooks::encrypted_parts::EncryptedPart;
use crate::webhooks::schedule::RETRIES_DEFAULT;
use crate::webhooks::signature::Secret;

/// Header with a signing secret that the broker generated, in the response of its creation only.
const SECRET_HEADER: HeaderName = HeaderName::from_static("x-sindri-signing-secret");
const TIMEOUT_SECONDS_DEFAULT: i64 = 30;

/// A new subscription, with its signing secret if the broker generated it.
pub(crate) struct CreatedWebhook {
    webhook: WebhookResponse,
    generated: Option<Secret>,
}

impl IntoResponse for CreatedWebhook {
    fn into_response(self) -> Response {
        let mut response = Created(self.webhook).into_response();
        let secret = self.generated.and_then(|secret| HeaderValue::try_from(secret.reveal()).ok());
        if let Some(mut secret) = secret {
            secret.set_sensitive(true);
            response.headers_mut().insert(SECRET_HEADER, secret);
        }
        response
    }
}

impl DescribeResponse for CreatedWebhook {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        Created::<WebhookResponse>::describe(operation, schemas);
        if let Some(response) = operation.responses.get_mut(&201) {
            let description = "Generated signing secret, if the request had none. It is not shown again.";
            response["headers"] =
                json!({SECRET_HEADER.as_str(): {"description": description, "schema": {"type": "string"}}});
        }
    }
}

pub(crate) async fn create(
    State(broker): State<Broker>,
    CreateContext(context): CreateContext,
    JsonBody(request): JsonBody<CreateWebhookRequest>,
) -> Result<CreatedWebhook, ErrorResponse> {
    let settings = require_settings(&broker)?;
    let requested = request.signing_secret.as_deref().map(parse_secret).transpose()?;
    let (secret, is_generated) = match requested {
        Some(secret) => (secret, false),
        None => (Secret::generate(&broker.entropy), true),
    };
    let (id, request) = (WebhookId::generate(&broker.entropy), check_request(&broker, settings, request).await?);
    let encrypt = |part, plain: &str| settings.encrypt(&broker.entropy, id, part, plain);
    let encrypted = EncryptedParts {
        url: encrypt(EncryptedPart::Url, &request.url),
        auth_header: request.auth_header.as_deref().map(|header| encrypt(EncryptedPart::AuthHeader, header)),
        signing_secret: encrypt(EncryptedPart::SigningSecret, &secret.reveal()),
    };
    let webhook = new_webhook(id, request, find_creator(&broker, &context).await?, &context);
    broker.store.create_webhook(context, WebhookRecord { public: webhook.clone(), encrypted }).await?;
    Ok(CreatedWebhook { webhook, generated: is_generated.then_some(secret) })
}

/// Checks a request and removes its empty fields.
async fn check_request(
    broker: &Broker,
    settings: &WebhookSettings,
    mut request: CreateWebhookRequest,
) -> Result<CreateWebhookRequest, ErrorResponse> {
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

/// Returns the name of the administrator that makes the request.
async fn find_creator(broker: &Broker, context: &WriteContext) -> Result<Option<String>, StoreError> {
    match context.actor {
        Some(KeyHolder::Admin(admin)) => Ok(Some(broker.store.get_admin(admin).await?.name)),
        Some(KeyHolder::Agent(_) | KeyHolder::Generator(_)) | None => Ok(None),
    }
}

fn new_webhook(
    id: WebhookId,
    request: CreateWebhookRequest,
    created_by: Option<String>,
    context: &WriteContext,
) -> WebhookResponse {
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
        created_by,
        created_at: context.time,
        updated_at: context.time,
    }
}

/// Checks that the objects in the filters exist.
async fn check_filters(broker: &Broker, filters: Option<&WebhookFilters>) -> Result<(), ErrorResponse> {
    let Some(filters) = filters else { return Ok(()) };
    if let Some(agent) = filters.agent_id {
        broker.store.get_agent(agent).await.map_err(missing_reference)?;
    }
    if let Some(stack) = filters.stack_id {
        broker.store.get_stack(stack).await.map_err(missing_reference)?;
    }
    Ok(())
}

/// Turns "not found" into the error for an object that a body refers to.
fn missing_reference(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound { kind, name } => StoreError::MissingReference { kind, name },
        other => other,
    }
}

/// Returns the settings of webhooks. Without an encryption key requests are rejected, because nothing can be encrypted.
pub(crate) fn require_settings(broker: &Broker) -> Result<&WebhookSettings, ErrorResponse> {
    broker.webhooks.as_ref().ok_or_else(|| {
        let message = "webhooks need an encryption key: set webhooks.encryption_key_file";
        ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "webhooks_not_configured", message)
    })
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<WebhookResponse>>, ErrorResponse> {
    let webhooks = broker.store.list_webhooks(params.page()).await?;
    permit.serialize(&broker, params.respond_sized(webhooks, |webhook| webhook.id, text_bytes)).await
}

/// Returns the size of the event types and labels of a subscription as they are stored.
fn text_bytes(webhook: &WebhookResponse) -> usize {
    let json_bytes = |texts: &Vec<String>| serde_json::to_string(texts).map_or(0, |json| json.len());
    json_bytes(&webhook.event_types) + webhook.target_labels.as_ref().map_or(0, json_bytes)
}

pub(crate) async fn list_event_types() -> Json<Vec<&'static str>> {
    Json(EventType::ALL.iter().map(|event| event.as_str()).collect())
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    PathParams(webhook): PathParams<WebhookId>,
) -> Result<Json<WebhookResponse>, ErrorResponse> {
    Ok(Json(broker.store.get_webhook(webhook).await?.public))
}

pub(crate) async fn update(
    State(broker): State<Broker>,
    PathParams(webhook): PathParams<WebhookId>,
    context: WriteContext,
    JsonBody(changes): JsonBody<UpdateWebhookRequest>,
) -> Result<Json<WebhookResponse>, ErrorResponse> {
    let settings = require_settings(&broker)?;
    check_filters(&broker, changes.filters.as_ref()).await?;
    check_changes(settings, &changes)?;
    let encrypted = encrypt_changes(&broker, settings, webhook, &changes)?;
    let change = move |record: &mut WebhookRecord| {
        encrypted.apply_to(&mut record.encrypted);
        update_fields(&mut record.public, changes);
    };
    Ok(Json(broker.store.update_webhook(context, webhook, Box::new(change)).await?))
}

fn check_changes(settings: &WebhookSettings, changes: &UpdateWebhookRequest) -> Result<(), ErrorResponse> {
    check_optional(changes.url.as_deref(), |url| check_url(url, settings.policy))?;
    check_optional(changes.auth_header.as_deref().filter(|header| !header.is_empty()), check_auth_header)?;
    check_optional(changes.name.as_deref(), check_name)?;
    changes.event_types.as_deref().map_or(Ok(()), check_event_types)?;
    changes.target_labels.as_deref().map_or(Ok(()), check_labels)?;
    changes.max_retries.map_or(Ok(()), check_retries)?;
    changes.timeout_seconds.map_or(Ok(()), check_timeout)
}

/// Confidential parts to replace, encrypted.
struct EncryptedChanges {
    url: Option<Vec<u8>>,
    /// Some(None): the header is removed.
    auth_header: Option<Option<Vec<u8>>>,
    signing_secret: Option<Vec<u8>>,
}

impl EncryptedChanges {
    fn apply_to(self, parts: &mut EncryptedParts) {
        let Self { url, auth_header, signing_secret } = self;
        url.into_iter().for_each(|url| parts.url = url);
        auth_header.into_iter().for_each(|header| parts.auth_header = header);
        signing_secret.into_iter().for_each(|secret| parts.signing_secret = secret);
    }
}

fn encrypt_changes(
    broker: &Broker,
    settings: &WebhookSettings,
    webhook: WebhookId,
    changes: &UpdateWebhookRequest,
) -> Result<EncryptedChanges, ErrorResponse> {
    let encrypt = |part, plain: &str| settings.encrypt(&broker.entropy, webhook, part, plain);
    let auth_header = changes.auth_header.as_deref().map(|header| Some(header).filter(|header| !header.is_empty()));
    let secret = changes.signing_secret.as_deref().map(parse_secret).transpose()?;
    Ok(EncryptedChanges {
        url: changes.url.as_deref().map(|url| encrypt(EncryptedPart::Url, url)),
        auth_header: auth_header.map(|header| header.map(|header| encrypt(EncryptedPart::AuthHeader, header))),
        signing_secret: secret.map(|secret| encrypt(EncryptedPart::SigningSecret, &secret.reveal())),
    })
}

fn update_fields(webhook: &mut WebhookResponse, changes: UpdateWebhookRequest) {
    webhook.name = changes.name.unwrap_or_else(|| std::mem::take(&mut webhook.name));
    webhook.event_types = changes.event_types.unwrap_or_else(|| std::mem::take(&mut webhook.event_types));
    if let Some(labels) = changes.target_labels {
        webhook.target_labels = Some(labels).filter(|labels| !labels.is_empty());
    }
    if let Some(filters) = changes.filters {
        webhook.filters = Some(filters).filter(|filters| *filters != WebhookFilters::default());
    }
    webhook.max_retries = changes.max_retries.unwrap_or(webhook.max_retries);
    webhook.timeout_seconds = changes.timeout_seconds.unwrap_or(webhook.timeout_seconds);
    webhook.enabled = changes.enabled.unwrap_or(webhook.enabled);
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    PathParams(webhook): PathParams<WebhookId>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    broker.store.delete_webhook(context, webhook).await?;
    Ok(NoContent)
}

pub(crate) async fn test(
    State(broker): State<Broker>,
    PathParams(webhook): PathParams<WebhookId>,
    UnrepeatableContext(context): UnrepeatableContext,
) -> Result<Json<TestWebhookResponse>, ErrorResponse> {
    Ok(Json(TestWebhookResponse { delivery_id: broker.store.queue_test_delivery(context, webhook).await? }))
}
