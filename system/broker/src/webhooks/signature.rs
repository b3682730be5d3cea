//! Signatures by the Standard Webhooks specification, by which a receiver verifies the sender and the time of a message.
//!
//! The HMAC-SHA256 of `id.timestamp.body` under the subscription's secret. Not implemented: several secrets at once,
//! and the asymmetric form of the specification.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use ring::hmac;
use sindri_model::Entropy;
use sindri_model::limits::WEBHOOK_SECRET_CHARS_MAX;
use thiserror::Error;

pub(crate) const ID_HEADER: HeaderName = HeaderName::from_static("webhook-id");
pub(crate) const TIMESTAMP_HEADER: HeaderName = HeaderName::from_static("webhook-timestamp");
pub(crate) const SIGNATURE_HEADER: HeaderName = HeaderName::from_static("webhook-signature");

const PREFIX: &str = "whsec_";
const VERSION: &str = "v1";
/// Limits of the specification.
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;
/// Length of a secret that the broker generates.
const MINTED_BYTES: usize = 32;

/// Secret that signs the messages of a subscription. `Debug` prints nothing of it.
#[derive(Clone)]
pub(crate) struct Secret(Vec<u8>);

/// The text is not a secret. The error does not contain it, because it may be a secret with a typing mistake.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum SecretError {
    #[error("a secret begins with {PREFIX}")]
    Prefix,
    #[error("the part of a secret after {PREFIX} must be base64")]
    Base64,
    #[error("a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, not {0}")]
    Length(usize),
}

impl Secret {
    /// Generates a new secret.
    pub(crate) fn generate(entropy: &Entropy) -> Self {
        Self(entropy.bytes::<MINTED_BYTES>().to_vec())
    }

    /// Parses a secret.
    pub(crate) fn parse(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::Prefix)?;
        if encoded.len() > WEBHOOK_SECRET_CHARS_MAX {
            return Err(SecretError::Length(encoded.len() / 4 * 3));
        }
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::Base64)?;
        match bytes.len() {
            SECRET_BYTES_MIN..=SECRET_BYTES_MAX => Ok(Self(bytes)),
            length => Err(SecretError::Length(length)),
        }
    }

    /// Returns the text of the secret. Return it once, to the client that created it; store it encrypted.
    pub(crate) fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Returns the value of the signature header of a message.
    pub(crate) fn sign(&self, id: &str, sent_at: Timestamp, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        context.update(format!("{id}.{}.", sent_at.as_second()).as_bytes());
        context.update(body);
        format!("{VERSION},{}", STANDARD.encode(context.sign()))
    }

    /// Returns the three headers of a signed message; `None` if the id is not valid in a header.
    pub(crate) fn headers(&self, id: &str, sent_at: Timestamp, body: &[u8]) -> Option<[(HeaderName, HeaderValue); 3]> {
        let signature = HeaderValue::try_from(self.sign(id, sent_at, body)).ok()?;
        Some([
            (ID_HEADER, HeaderValue::from_str(id).ok()?),
            (TIMESTAMP_HEADER, HeaderValue::from(sent_at.as_second())),
            (SIGNATURE_HEADER, signature),
        ])
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the specification.
    const PUBLISHED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_published_example_has_the_published_signature() {
        let secret = Secret::parse(PUBLISHED).unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at(1_614_265_330), br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn id_time_body_and_secret_each_change_the_signature() {
        let secret = Secret::parse(PUBLISHED).unwrap();
        let other = Secret::parse("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
        let signature = secret.sign("a", at(1), b"body");
        for different in [
            secret.sign("b", at(1), b"body"),
            secret.sign("a", at(2), b"body"),
            secret.sign("a", at(1), b"Body"),
            other.sign("a", at(1), b"body"),
        ] {
            assert_ne!(different, signature);
        }
    }

    #[test]
    fn the_headers_have_the_signed_values() {
        let secret = Secret::parse(PUBLISHED).unwrap();
        let headers = secret.headers("message-1", at(1_700_000_000), b"{}").unwrap();
        let shown = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let signature = format!("webhook-signature: {}", secret.sign("message-1", at(1_700_000_000), b"{}"));
        assert_eq!(shown, ["webhook-id: message-1", "webhook-timestamp: 1700000000", &signature]);
        assert!(secret.headers("line\nbreak", at(1), b"").is_none());
    }

    #[test]
    fn a_secret_is_parsed_from_its_text_and_not_printed_by_debug() {
        let generated = Secret::generate(&Entropy::new(|bytes| bytes.fill(7)));
        let again = Secret::parse(&generated.reveal()).unwrap();
        assert_eq!(again.0, [7; MINTED_BYTES]);
        assert_eq!(format!("{generated:?}"), "whsec_…");
    }

    #[test]
    fn only_secrets_of_24_to_64_bytes_are_accepted() {
        let of = |length: usize| Secret::parse(&format!("whsec_{}", STANDARD.encode(vec![1; length]))).map(|_| ());
        assert_eq!([of(24), of(64)], [Ok(()), Ok(())]);
        assert_eq!([of(23), of(65)], [Err(SecretError::Length(23)), Err(SecretError::Length(65))]);
        assert_eq!(of(1_000_000), Err(SecretError::Length(1_000_002)));
        assert_eq!(Secret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap_err(), SecretError::Prefix);
        assert_eq!(Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La!aSw").unwrap_err(), SecretError::Base64);
        assert_eq!(Secret::parse("whsec_").unwrap_err(), SecretError::Length(0));
    }
}
