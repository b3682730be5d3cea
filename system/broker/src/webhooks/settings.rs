//! Settings of webhooks: the key of their secrets, the addresses that are allowed, and the sender.

use std::fmt;

use super::sealing_key::SealingKey;
use super::send::Sender;
use super::target::TargetPolicy;

/// What a broker needs to send messages.
pub struct WebhookSettings {
    /// Opens and seals what is stored.
    pub key: SealingKey,
    /// Where messages may go.
    pub policy: TargetPolicy,
    /// How they get there.
    pub sender: Sender,
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings").field("policy", &self.policy).finish_non_exhaustive()
    }
}
