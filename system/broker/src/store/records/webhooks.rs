//! Webhook subscriptions, and the delivery of their messages.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use sindri_model::wire::{WebhookDelivery, WebhookResponse};
use sindri_model::{DeliveryId, WebhookId};

use super::error::StoreError;
use super::paging::Page;

/// The confidential parts of a subscription, encrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedParts {
    /// URL to which messages are sent.
    pub url: Vec<u8>,
    /// The `Authorization` header.
    pub auth_header: Option<Vec<u8>>,
    /// Secret with which messages are signed.
    pub signing_secret: Vec<u8>,
}

impl fmt::Debug for EncryptedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptedParts")
    }
}

/// A subscription as stored.
#[derive(Clone, Debug)]
pub struct WebhookRecord {
    /// The parts that API clients may read.
    pub public: WebhookResponse,
    /// The confidential parts.
    pub encrypted: EncryptedParts,
}

/// Function that changes some fields of a subscription.
pub type ChangeWebhook = Box<dyn FnOnce(&mut WebhookRecord) + Send>;

/// Function that encrypts the confidential parts of a subscription with another key.
pub type Reencrypt = Box<dyn Fn(&WebhookRecord) -> Result<EncryptedParts, StoreError> + Send>;

/// Filter of the messages of a subscription.
#[derive(Clone, Debug)]
pub struct DeliveryFilter {
    /// The subscription.
    pub webhook: WebhookId,
    /// Status of the message.
    pub status: Option<String>,
    /// Number of messages to skip.
    pub offset: i64,
    /// Page of the rest.
    pub page: Page,
}

/// Request of a sender for messages that are due. No other sender gets them before `until`.
#[derive(Clone, Debug)]
pub struct AcquireDeliveries {
    /// Name of the sender: a broker or an agent.
    pub sender: String,
    /// Current time.
    pub now: Timestamp,
    /// Time after which another sender may acquire the messages.
    pub until: Timestamp,
    /// Largest number of messages.
    pub limit: usize,
    /// Largest number of messages of one subscription.
    pub limit_each: usize,
    /// Subscriptions of which the sender takes no messages now.
    pub busy: BTreeSet<WebhookId>,
}

/// Messages that the sender has acquired and must send now.
#[derive(Clone, Debug)]
pub struct AcquiredDeliveries {
    /// The messages.
    pub deliveries: Vec<AcquiredDelivery>,
    /// If there are no messages: the time at which the next one of a subscription that is not busy is due.
    pub next_at: Option<Timestamp>,
}

/// One acquired message.
#[derive(Clone, Debug)]
pub struct AcquiredDelivery {
    /// The message.
    pub delivery: WebhookDelivery,
    /// Its subscription.
    pub webhook: WebhookRecord,
}

/// An attempt to send a message.
#[derive(Clone, Debug)]
pub struct DeliveryAttempt {
    /// The message.
    pub delivery: DeliveryId,
    /// Name of the sender that had acquired it.
    pub sender: String,
    /// Time at which the attempt ended.
    pub ended_at: Timestamp,
    /// Result for the message.
    pub outcome: AttemptOutcome,
    /// Reason of a failure.
    pub error: Option<String>,
}

/// Result of an attempt to send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The subscriber accepted the message.
    Delivered,
    /// The message will be sent again.
    RetryAt(Timestamp),
    /// The message will not be sent again.
    Abandoned,
}
