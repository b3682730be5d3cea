//! Settings of webhooks: the key of their secrets, the addresses that are allowed, and the sender.

use std::fmt;

use super::send::Sender;
use super::target::TargetPolicy;
use crate::encryption_key::EncryptionKey;

/// Settings by which a broker delivers webhooks.
pub struct WebhookSettings {
    /// Key of the stored secrets.
    pub key: EncryptionKey,
    /// Allowed receivers.
    pub policy: TargetPolicy,
    /// Sender of messages.
    pub sender: Sender,
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings").field("policy", &self.policy).finish_non_exhaustive()
    }
}
