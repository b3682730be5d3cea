//! The parts of a subscription that nobody may read, on their way into the store and out of it.

use std::collections::BTreeMap;
use std::fmt;

use sindri_model::{Entropy, WebhookId};
use thiserror::Error;

use super::headers::ExtraHeaders;
use super::seal::SealingKey;
use super::signature::Secret;
use super::target::{Target, TargetPolicy};
use crate::store::SealedParts;

const URL: &str = "url";
const AUTH_HEADER: &str = "auth_header";
const SIGNING_SECRET: &str = "signing_secret";

/// The same parts, open.
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

/// Sealed parts cannot be opened: the key is another one, or they were changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the address and the secrets of webhook {0} cannot be decrypted with this key")]
pub struct Unopened(pub WebhookId);

/// Where and how a message is sent.
pub(super) struct Route {
    pub target: Target,
    pub headers: ExtraHeaders,
    pub secret: Secret,
}

impl OpenParts {
    pub(crate) fn seal(&self, key: &SealingKey, entropy: &Entropy, webhook: WebhookId) -> SealedParts {
        let seal = |part: &str, plain: &str| key.seal(entropy, &context(webhook, part), plain.as_bytes());
        SealedParts {
            url: seal(URL, &self.url),
            auth_header: self.auth_header.as_ref().map(|header| seal(AUTH_HEADER, header)),
            signing_secret: seal(SIGNING_SECRET, &self.signing_secret),
        }
    }

    pub(crate) fn open(sealed: &SealedParts, key: &SealingKey, webhook: WebhookId) -> Result<Self, Unopened> {
        let open = |part: &str, sealed: &[u8]| {
            let plain = key.open(&context(webhook, part), sealed).map_err(|_| Unopened(webhook))?;
            String::from_utf8(plain).map_err(|_| Unopened(webhook))
        };
        Ok(Self {
            url: open(URL, &sealed.url)?,
            auth_header: sealed.auth_header.as_ref().map(|header| open(AUTH_HEADER, header)).transpose()?,
            signing_secret: open(SIGNING_SECRET, &sealed.signing_secret)?,
        })
    }

    /// Checked again before each message: what is allowed may have changed since it was stored.
    pub(super) fn route(&self, policy: TargetPolicy) -> Result<Route, String> {
        let headers = self.auth_header.iter().map(|value| ("authorization".to_owned(), value.clone()));
        Ok(Route {
            target: Target::parse(&self.url, policy).map_err(|error| error.to_string())?,
            headers: ExtraHeaders::parse(&headers.collect::<BTreeMap<_, _>>()).map_err(|error| error.to_string())?,
            secret: Secret::parse(&self.signing_secret).map_err(|error| error.to_string())?,
        })
    }
}

/// Sealed values cannot be moved to another subscription or another part of it.
fn context(webhook: WebhookId, part: &str) -> String {
    format!("webhook {webhook} {part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy() -> Entropy {
        Entropy::new(|bytes| bytes.fill(3))
    }

    #[test]
    fn parts_come_back_as_they_were_and_only_for_their_own_subscription() {
        let key = SealingKey::parse(&"ab".repeat(32)).unwrap();
        let open = OpenParts {
            url: "https://example.com/hook?token=1".to_owned(),
            auth_header: Some("Bearer x".to_owned()),
            signing_secret: Secret::mint(&entropy()).reveal(),
        };
        let (one, two) = (WebhookId::mint(&entropy()), WebhookId::mint(&Entropy::new(|bytes| bytes.fill(4))));
        let sealed = open.seal(&key, &entropy(), one);
        assert_eq!(OpenParts::open(&sealed, &key, one), Ok(open));
        assert_eq!(OpenParts::open(&sealed, &key, two), Err(Unopened(two)));
        let other = SealingKey::parse(&"cd".repeat(32)).unwrap();
        assert_eq!(OpenParts::open(&sealed, &other, one), Err(Unopened(one)));
    }
}
