//! Webhook subscriptions and deliveries. URLs, headers and secrets are never returned to clients.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use crate::limits::{
    LABEL_CHARS_MAX, NAME_CHARS_MAX, NO_CONTROL_PATTERN, WEBHOOK_AUTH_HEADER_CHARS_MAX, WEBHOOK_EVENT_TYPE_CHARS_MAX,
    WEBHOOK_EVENT_TYPES_MAX, WEBHOOK_LABELS_MAX, WEBHOOK_RETRIES_MAX, WEBHOOK_SECRET_CHARS_MAX,
    WEBHOOK_TIMEOUT_SECONDS_MAX, WEBHOOK_TIMEOUT_SECONDS_MIN, WEBHOOK_URL_CHARS_MAX, WORD_PATTERN,
};
use crate::{AgentId, DeliveryId, EventId, StackId, WebhookId};

/// Restriction of a subscription to some events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookFilters {
    /// Only events about this agent.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// Only events about this stack.
    #[serde(default)]
    pub stack_id: Option<StackId>,
}

/// Request to create a subscription.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateWebhookRequest {
    /// Human-readable name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: String,
    /// URL to which messages are sent.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = WEBHOOK_URL_CHARS_MAX)))]
    pub url: String,
    /// Value of the `Authorization` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = WEBHOOK_AUTH_HEADER_CHARS_MAX)))]
    pub auth_header: Option<String>,
    /// Types of events; wildcards such as `deployment.*` match several.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = WEBHOOK_EVENT_TYPES_MAX), inner(length(min = 1, max = WEBHOOK_EVENT_TYPE_CHARS_MAX))))]
    pub event_types: Vec<String>,
    /// Restriction to one agent or one stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<WebhookFilters>,
    /// Agents with one of these labels send the messages, instead of the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = WEBHOOK_LABELS_MAX), inner(length(min = 1, max = LABEL_CHARS_MAX), regex(pattern = WORD_PATTERN))))]
    pub target_labels: Option<Vec<String>>,
    /// Maximum number of retries of a failed delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = WEBHOOK_RETRIES_MAX)))]
    pub max_retries: Option<i64>,
    /// Timeout of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = WEBHOOK_TIMEOUT_SECONDS_MIN, max = WEBHOOK_TIMEOUT_SECONDS_MAX)))]
    pub timeout_seconds: Option<i64>,
    /// Secret that signs the messages; if absent, one is generated and returned once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = WEBHOOK_SECRET_CHARS_MAX)))]
    pub signing_secret: Option<String>,
}

/// Request to change a subscription. Absent fields stay unchanged.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpdateWebhookRequest {
    /// Human-readable name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = NAME_CHARS_MAX), regex(pattern = NO_CONTROL_PATTERN)))]
    pub name: Option<String>,
    /// URL to which messages are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = WEBHOOK_URL_CHARS_MAX)))]
    pub url: Option<String>,
    /// Value of the `Authorization` header; an empty text removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = WEBHOOK_AUTH_HEADER_CHARS_MAX)))]
    pub auth_header: Option<String>,
    /// Secret with which messages are signed, such as `whsec_…`, from the next attempt on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = WEBHOOK_SECRET_CHARS_MAX)))]
    pub signing_secret: Option<String>,
    /// Types of events; wildcards such as `deployment.*` match several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = WEBHOOK_EVENT_TYPES_MAX), inner(length(min = 1, max = WEBHOOK_EVENT_TYPE_CHARS_MAX))))]
    pub event_types: Option<Vec<String>>,
    /// Restriction to one agent or one stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<WebhookFilters>,
    /// Agents with one of these labels send the messages, instead of the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = WEBHOOK_LABELS_MAX), inner(length(min = 1, max = LABEL_CHARS_MAX), regex(pattern = WORD_PATTERN))))]
    pub target_labels: Option<Vec<String>>,
    /// True if messages are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Maximum number of retries of a failed delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = WEBHOOK_RETRIES_MAX)))]
    pub max_retries: Option<i64>,
    /// Timeout of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = WEBHOOK_TIMEOUT_SECONDS_MIN, max = WEBHOOK_TIMEOUT_SECONDS_MAX)))]
    pub timeout_seconds: Option<i64>,
}

/// Shows the name only: URL, header and secret stay out of logs.
impl fmt::Debug for CreateWebhookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateWebhookRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for UpdateWebhookRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateWebhookRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A subscription without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookResponse {
    /// Id of the subscription.
    pub id: WebhookId,
    /// Human-readable name.
    pub name: String,
    /// True if a URL is set.
    pub has_url: bool,
    /// True if an `Authorization` header is set.
    pub has_auth_header: bool,
    /// Types of events; wildcards such as `deployment.*` match several.
    pub event_types: Vec<String>,
    /// Restriction to one agent or one stack.
    #[serde(default)]
    pub filters: Option<WebhookFilters>,
    /// Agents with one of these labels send the messages, instead of the broker.
    #[serde(default)]
    pub target_labels: Option<Vec<String>>,
    /// True if messages are sent.
    pub enabled: bool,
    /// Maximum number of retries of a failed delivery.
    pub max_retries: i64,
    /// Timeout of one attempt.
    pub timeout_seconds: i64,
    /// Creator of the subscription.
    #[serde(default)]
    pub created_by: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Delivery of one event to one subscriber.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookDelivery {
    /// Id of the delivery.
    pub id: DeliveryId,
    /// Id of the subscription.
    pub subscription_id: WebhookId,
    /// Type of the event.
    pub event_type: String,
    /// Id of the event, equal for all its subscribers.
    pub event_id: EventId,
    /// Message.
    pub payload: Value,
    /// Agents with one of these labels send the messages, instead of the broker.
    #[serde(default)]
    pub target_labels: Option<Vec<String>>,
    /// `pending`, `acquired`, `success`, `failed` (will be retried) or `dead`.
    pub status: String,
    /// Sender that has acquired the delivery.
    #[serde(default)]
    pub acquired_by: Option<String>,
    /// Time until which no other sender may acquire the delivery.
    #[serde(default)]
    pub acquired_until: Option<Timestamp>,
    /// Number of attempts so far.
    pub attempts: i64,
    /// Time of the last attempt.
    #[serde(default)]
    pub last_attempt_at: Option<Timestamp>,
    /// Time of the next attempt.
    #[serde(default)]
    pub next_retry_at: Option<Timestamp>,
    /// Error of the last attempt.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Time of the event.
    pub created_at: Timestamp,
    /// Time of the success, or of the last failure after which no retry follows.
    #[serde(default)]
    pub completed_at: Option<Timestamp>,
}

/// A queued test message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestWebhookResponse {
    /// Id of the delivery; the subscription's deliveries show its result.
    pub delivery_id: DeliveryId,
}

/// Delivery that an agent has to send.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingWebhookDelivery {
    /// Id of the delivery.
    pub id: DeliveryId,
    /// Id of the subscription.
    pub subscription_id: WebhookId,
    /// Type of the event.
    pub event_type: String,
    /// Message.
    pub payload: String,
    /// URL to which the message is sent.
    pub url: String,
    /// Value of the `Authorization` header.
    #[serde(default)]
    pub auth_header: Option<String>,
    /// Timeout of one attempt.
    pub timeout_seconds: i64,
    /// Maximum number of retries of a failed delivery.
    pub max_retries: i64,
    /// Number of previous attempts.
    pub attempts: i64,
}

/// Result of an agent's attempt to deliver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeliveryResultRequest {
    /// True if the receiver accepted the message.
    pub success: bool,
    /// HTTP status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<i64>,
    /// Error of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}
