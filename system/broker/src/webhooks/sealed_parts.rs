//! The secret parts of a subscription: sealed for the store, unsealed for delivery.

use std::collections::BTreeMap;
use std::fmt;

use sindri_model::{Entropy, WebhookId};
use thiserror::Error;

use super::headers::ExtraHeaders;
use super::settings::WebhookSettings;
use super::signature::Secret;
use super::target::{Target, TargetPolicy};
use crate::store::SealedParts;

/// A sealed part of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedPart {
    Url,
    AuthHeader,
    SigningSecret,
}

impl SealedPart {
    /// Returns the context, so that a sealed value cannot be moved to another subscription or part.
    fn context(self, webhook: WebhookId) -> String {
        let part = match self {
            Self::Url => "url",
            Self::AuthHeader => "auth_header",
            Self::SigningSecret => "signing_secret",
        };
        format!("webhook {webhook} {part}")
    }
}

/// The sealed parts of a subscription cannot be decrypted: the key is another one, or they were changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the URL and the secrets of webhook {0} cannot be decrypted with this key")]
pub struct UnsealError(pub WebhookId);

impl WebhookSettings {
    /// Encrypts a part of a subscription.
    pub(crate) fn seal(&self, entropy: &Entropy, webhook: WebhookId, part: SealedPart, plain: &str) -> Vec<u8> {
        self.key.seal(entropy, &part.context(webhook), plain.as_bytes())
    }

    /// Decrypts a part of a subscription.
    pub(crate) fn open(&self, webhook: WebhookId, part: SealedPart, sealed: &[u8]) -> Result<String, UnsealError> {
        let plain = self.key.open(&part.context(webhook), sealed).map_err(|_| UnsealError(webhook))?;
        // Only UTF-8 texts are sealed.
        String::from_utf8(plain).map_err(|_| UnsealError(webhook))
    }

    /// Decrypts every part.
    pub(crate) fn open_all(&self, webhook: WebhookId, sealed: &SealedParts) -> Result<UnsealedParts, UnsealError> {
        let header = sealed.auth_header.as_ref();
        Ok(UnsealedParts {
            url: self.open(webhook, SealedPart::Url, &sealed.url)?,
            auth_header: header.map(|header| self.open(webhook, SealedPart::AuthHeader, header)).transpose()?,
            signing_secret: self.open(webhook, SealedPart::SigningSecret, &sealed.signing_secret)?,
        })
    }
}

/// The secret parts of a subscription in plain text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UnsealedParts {
    pub url: String,
    pub auth_header: Option<String>,
    pub signing_secret: String,
}

impl fmt::Debug for UnsealedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsealedParts")
    }
}

/// Receiver of a subscription's messages, with headers and secret.
pub(crate) struct DeliveryRoute {
    pub target: Target,
    pub headers: ExtraHeaders,
    pub secret: Secret,
}

impl UnsealedParts {
    /// Checks the parts again before each message, because the policy may have changed since they were stored.
    pub(crate) fn route(&self, policy: TargetPolicy) -> Result<DeliveryRoute, String> {
        let headers = self.auth_header.iter().map(|value| ("authorization".to_owned(), value.clone()));
        Ok(DeliveryRoute {
            target: Target::parse(&self.url, policy).map_err(|error| error.to_string())?,
            headers: ExtraHeaders::parse(&headers.collect::<BTreeMap<_, _>>()).map_err(|error| error.to_string())?,
            secret: Secret::parse(&self.signing_secret).map_err(|error| error.to_string())?,
        })
    }
}
