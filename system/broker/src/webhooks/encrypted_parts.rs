//! The confidential parts of a subscription: encrypted in the store, decrypted for delivery.

use std::collections::BTreeMap;
use std::fmt;

use sindri_model::{Entropy, WebhookId};
use thiserror::Error;

use super::headers::ExtraHeaders;
use super::settings::WebhookSettings;
use super::signature::Secret;
use super::target::{Target, TargetPolicy};
use crate::encryption_key::EncryptionKey;
use crate::store::EncryptedParts;

/// An encrypted part of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncryptedPart {
    Url,
    AuthHeader,
    SigningSecret,
}

impl EncryptedPart {
    /// Returns the context, so that an encrypted value cannot be moved to another subscription or part.
    fn context(self, webhook: WebhookId) -> String {
        let part = match self {
            Self::Url => "url",
            Self::AuthHeader => "auth_header",
            Self::SigningSecret => "signing_secret",
        };
        format!("webhook {webhook} {part}")
    }
}

/// The encrypted parts of a subscription cannot be decrypted: the key is another one, or they were changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the URL and the secrets of webhook {0} cannot be decrypted with this key")]
pub struct DecryptionError(pub WebhookId);

impl WebhookSettings {
    /// Encrypts a part of a subscription.
    pub(crate) fn encrypt(&self, entropy: &Entropy, webhook: WebhookId, part: EncryptedPart, plain: &str) -> Vec<u8> {
        self.key.encrypt(entropy, &part.context(webhook), plain.as_bytes())
    }

    /// Encrypts every part of a subscription with another key.
    pub(crate) fn reencrypt(
        &self,
        key: &EncryptionKey,
        entropy: &Entropy,
        webhook: WebhookId,
        encrypted: &EncryptedParts,
    ) -> Result<EncryptedParts, DecryptionError> {
        let plain = self.decrypt_all(webhook, encrypted)?;
        let encrypt = |part: EncryptedPart, plain: &str| key.encrypt(entropy, &part.context(webhook), plain.as_bytes());
        Ok(EncryptedParts {
            url: encrypt(EncryptedPart::Url, &plain.url),
            auth_header: plain.auth_header.as_deref().map(|header| encrypt(EncryptedPart::AuthHeader, header)),
            signing_secret: encrypt(EncryptedPart::SigningSecret, &plain.signing_secret),
        })
    }

    /// Decrypts a part of a subscription.
    pub(crate) fn decrypt(
        &self,
        webhook: WebhookId,
        part: EncryptedPart,
        encrypted: &[u8],
    ) -> Result<String, DecryptionError> {
        let plain = self.key.decrypt(&part.context(webhook), encrypted).map_err(|_| DecryptionError(webhook))?;
        // Only UTF-8 texts are encrypted.
        String::from_utf8(plain).map_err(|_| DecryptionError(webhook))
    }

    /// Decrypts every part.
    pub(crate) fn decrypt_all(
        &self,
        webhook: WebhookId,
        encrypted: &EncryptedParts,
    ) -> Result<DecryptedParts, DecryptionError> {
        let header = encrypted.auth_header.as_ref();
        Ok(DecryptedParts {
            url: self.decrypt(webhook, EncryptedPart::Url, &encrypted.url)?,
            auth_header: header.map(|header| self.decrypt(webhook, EncryptedPart::AuthHeader, header)).transpose()?,
            signing_secret: self.decrypt(webhook, EncryptedPart::SigningSecret, &encrypted.signing_secret)?,
        })
    }
}

/// The confidential parts of a subscription in plain text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DecryptedParts {
    pub url: String,
    pub auth_header: Option<String>,
    pub signing_secret: String,
}

impl fmt::Debug for DecryptedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptedParts")
    }
}

/// Receiver of a subscription's messages, with headers and secret.
pub(crate) struct DeliveryRoute {
    pub target: Target,
    pub headers: ExtraHeaders,
    pub secret: Secret,
}

impl DecryptedParts {
    /// Returns the receiver with headers and secret. The parts are checked before each message, because the policy may
    /// have changed since they were stored.
    pub(crate) fn check_route(&self, policy: TargetPolicy) -> Result<DeliveryRoute, String> {
        let headers = self.auth_header.iter().map(|value| ("authorization".to_owned(), value.clone()));
        Ok(DeliveryRoute {
            target: Target::parse(&self.url, policy).map_err(|error| error.to_string())?,
            headers: ExtraHeaders::parse(&headers.collect::<BTreeMap<_, _>>()).map_err(|error| error.to_string())?,
            secret: Secret::parse(&self.signing_secret).map_err(|error| error.to_string())?,
        })
    }
}
