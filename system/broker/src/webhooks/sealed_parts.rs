//! The parts of a subscription that nobody may read, on their way into the store and out of it.

use std::collections::BTreeMap;
use std::fmt;

use sindri_model::{Entropy, WebhookId};
use thiserror::Error;

use super::headers::ExtraHeaders;
use super::settings::WebhookSettings;
use super::signature::Secret;
use super::target::{Target, TargetPolicy};
use crate::store::SealedParts;

/// A part of a subscription that is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedPart {
    Url,
    AuthHeader,
    SigningSecret,
}

impl SealedPart {
    /// Sealed values cannot be moved to another subscription or another part of it.
    fn context(self, webhook: WebhookId) -> String {
        let part = match self {
            Self::Url => "url",
            Self::AuthHeader => "auth_header",
            Self::SigningSecret => "signing_secret",
        };
        format!("webhook {webhook} {part}")
    }
}

/// Sealed parts cannot be opened: the key is another one, or they were changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the address and the secrets of webhook {0} cannot be decrypted with this key")]
pub struct Unopened(pub WebhookId);

impl WebhookSettings {
    /// Seals a part of a subscription.
    pub(crate) fn seal(&self, entropy: &Entropy, webhook: WebhookId, part: SealedPart, plain: &str) -> Vec<u8> {
        self.key.seal(entropy, &part.context(webhook), plain.as_bytes())
    }

    /// Opens what was sealed as this part of this subscription.
    pub(crate) fn open(&self, webhook: WebhookId, part: SealedPart, sealed: &[u8]) -> Result<String, Unopened> {
        let plain = self.key.open(&part.context(webhook), sealed).map_err(|_| Unopened(webhook))?;
        // Only texts are sealed.
        String::from_utf8(plain).map_err(|_| Unopened(webhook))
    }

    /// Opens every part.
    pub(crate) fn open_all(&self, webhook: WebhookId, sealed: &SealedParts) -> Result<OpenParts, Unopened> {
        let header = sealed.auth_header.as_ref();
        Ok(OpenParts {
            url: self.open(webhook, SealedPart::Url, &sealed.url)?,
            auth_header: header.map(|header| self.open(webhook, SealedPart::AuthHeader, header)).transpose()?,
            signing_secret: self.open(webhook, SealedPart::SigningSecret, &sealed.signing_secret)?,
        })
    }
}

/// The parts, open.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OpenParts {
    pub url: String,
    pub auth_header: Option<String>,
    pub signing_secret: String,
}

impl fmt::Debug for OpenParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenParts")
    }
}

/// Where and how a message is sent.
pub(crate) struct Route {
    pub target: Target,
    pub headers: ExtraHeaders,
    pub secret: Secret,
}

impl OpenParts {
    /// Checked again before each message: what is allowed may have changed since it was stored.
    pub(crate) fn route(&self, policy: TargetPolicy) -> Result<Route, String> {
        let headers = self.auth_header.iter().map(|value| ("authorization".to_owned(), value.clone()));
        Ok(Route {
            target: Target::parse(&self.url, policy).map_err(|error| error.to_string())?,
            headers: ExtraHeaders::parse(&headers.collect::<BTreeMap<_, _>>()).map_err(|error| error.to_string())?,
            secret: Secret::parse(&self.signing_secret).map_err(|error| error.to_string())?,
        })
    }
}
