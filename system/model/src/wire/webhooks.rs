//! Subscriptions to events, and the messages that follow from them. URLs and headers never come back out.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentId, DeliveryId, EventId, StackId, WebhookId};

/// Narrows a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WebhookFilters {
    /// Only what concerns this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Only what concerns this stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_id: Option<StackId>,
}

/// Asks for a subscription.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWebhookRequest {
    /// For people.
    pub name: String,
    /// Where to send.
    pub url: String,
    /// Sent as `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_header: Option<String>,
    /// Which events; wildcards such as `deployment.*` match.
    pub event_types: Vec<String>,
    /// Narrows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<WebhookFilters>,
    /// Agents with one of these labels send, instead of the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_labels: Option<Vec<String>>,
    /// How often a failed message is sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i64>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// Signs messages; made and shown once if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<String>,
}

/// Changes any part of a subscription.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateWebhookRequest {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Sent as `Authorization`; an empty text takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_header: Option<String>,
    /// Which events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_types: Option<Vec<String>>,
    /// Narrows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<WebhookFilters>,
    /// Agents with one of these labels send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_labels: Option<Vec<String>>,
    /// Whether anything is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How often a failed message is sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i64>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
}

/// What may be seen of a request: not the address, not the header, not the secret.
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

/// A subscription, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookResponse {
    /// Its id.
    pub id: WebhookId,
    /// For people.
    pub name: String,
    /// Whether there is an address.
    pub has_url: bool,
    /// Whether there is an `Authorization` header.
    pub has_auth_header: bool,
    /// Which events.
    pub event_types: Vec<String>,
    /// What narrows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<WebhookFilters>,
    /// Agents with one of these labels send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_labels: Option<Vec<String>>,
    /// Whether anything is sent.
    pub enabled: bool,
    /// How often a failed message is sent again.
    pub max_retries: i64,
    /// How long one attempt may take.
    pub timeout_seconds: i64,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// One message to one subscriber, and how it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// The subscription.
    pub subscription_id: WebhookId,
    /// What happened.
    pub event_type: String,
    /// The same for every subscriber of one event.
    pub event_id: EventId,
    /// The message.
    pub payload: Value,
    /// Agents with one of these labels send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_labels: Option<Vec<String>>,
    /// `pending`, `acquired`, `success`, `failed` (will be sent again) or `dead`.
    pub status: String,
    /// Who is sending it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquired_by: Option<String>,
    /// Until when nobody else will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquired_until: Option<Timestamp>,
    /// How often it was sent.
    pub attempts: i64,
    /// When it was last sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<Timestamp>,
    /// When it will be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_retry_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When it happened.
    pub created_at: Timestamp,
    /// When it ended, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// A message was queued, to see whether it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestWebhookResponse {
    /// The message; how it went is in the list of the subscription's messages.
    pub delivery_id: DeliveryId,
}

/// A message that an agent is to send.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingWebhookDelivery {
    /// Its id.
    pub id: DeliveryId,
    /// The subscription.
    pub subscription_id: WebhookId,
    /// What happened.
    pub event_type: String,
    /// The message.
    pub payload: String,
    /// Where to send it.
    pub url: String,
    /// Sent as `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_header: Option<String>,
    /// How long the attempt may take.
    pub timeout_seconds: i64,
    /// How often a failed message is sent again.
    pub max_retries: i64,
    /// How often it was sent before.
    pub attempts: i64,
}

/// How an agent's attempt went.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeliveryResultRequest {
    /// Whether it was taken.
    pub success: bool,
    /// What was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<i64>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}
