//! Encryption at rest of what a subscription must not lose to whoever reads the database: address, headers, secret.
//!
//! A sealed value is a version, a nonce, and what ChaCha20-Poly1305 makes of the text. The context of a value, such
//! as the row and the column that it belongs to, is authenticated with it: it opens nowhere else. A key can seal far
//! more values than a broker ever has before two random nonces are likely to be equal.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sindri_model::Entropy;
use thiserror::Error;

/// The first byte of what is sealed: another cipher would have another.
const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
/// The longest text that is looked at as a key.
const KEY_CHARS_MAX: usize = 2 * KEY_BYTES;

/// What values are sealed with. Its `Debug` shows nothing of it.
pub struct SealingKey(LessSafeKey);

/// The text is not a key. It is not repeated: it may be one with a mistake in it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not an encryption key: expected {KEY_BYTES} bytes as base64 or as {KEY_CHARS_MAX} hex digits")]
pub struct SealingKeyError;

/// A sealed value does not open.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum OpenError {
    #[error("the sealed value is cut off")]
    Short,
    #[error("the sealed value has version {0}, which this broker does not know")]
    Version(u8),
    #[error("the sealed value was made with another key, belongs elsewhere, or was changed")]
    Inauthentic,
}

impl SealingKey {
    /// Reads a key from its text: 32 bytes as base64 or as hex.
    pub fn parse(text: &str) -> Result<Self, SealingKeyError> {
        let text = text.trim();
        let bytes = match text.len() {
            KEY_CHARS_MAX => from_hex(text),
            0..KEY_CHARS_MAX => STANDARD.decode(text).ok(),
            _ => None,
        };
        let key = bytes.and_then(|bytes| UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok());
        key.map(|key| Self(LessSafeKey::new(key))).ok_or(SealingKeyError)
    }

    /// Seals a value for one context.
    pub(crate) fn seal(&self, entropy: &Entropy, context: &str, plain: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = entropy.bytes();
        let mut text = plain.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), authenticated(context), &mut text)
            .expect("no value of a subscription is longer than the cipher can take");
        [&[VERSION][..], &nonce, &text].concat()
    }

    /// Opens a value that was sealed with this key for this context.
    pub(crate) fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, OpenError> {
        let (&version, rest) = sealed.split_first().ok_or(OpenError::Short)?;
        if version != VERSION {
            return Err(OpenError::Version(version));
        }
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or(OpenError::Short)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.0.open_in_place(nonce, authenticated(context), &mut text);
        plain.map(|plain| plain.to_vec()).map_err(|_| OpenError::Inauthentic)
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

/// The version is part of it, so that it cannot be changed either.
fn authenticated(context: &str) -> Aad<Vec<u8>> {
    Aad::from([&[VERSION], context.as_bytes()].concat())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> SealingKey {
        SealingKey::parse(&STANDARD.encode([byte; KEY_BYTES])).unwrap()
    }

    fn entropy(byte: u8) -> Entropy {
        Entropy::new(move |bytes| bytes.fill(byte))
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_in_its_context(plain: Vec<u8>, context: String, nonce: u8) {
            let sealed = key(1).seal(&entropy(nonce), &context, &plain);
            prop_assert_eq!(key(1).open(&context, &sealed), Ok(plain));
        }

        #[test]
        fn a_changed_byte_is_noticed(plain: Vec<u8>, at: prop::sample::Index, bit in 0_u32..8) {
            let mut sealed = key(1).seal(&entropy(2), "row", &plain);
            let at = at.index(sealed.len());
            sealed[at] ^= 1 << bit;
            prop_assert!(key(1).open("row", &sealed).is_err());
        }

        #[test]
        fn a_cut_value_is_noticed(plain: Vec<u8>, cut: prop::sample::Index) {
            let sealed = key(1).seal(&entropy(2), "row", &plain);
            prop_assert!(key(1).open("row", &sealed[..cut.index(sealed.len())]).is_err());
        }

        #[test]
        fn foreign_bytes_never_open(sealed: Vec<u8>) {
            prop_assert!(key(1).open("row", &sealed).is_err());
        }
    }

    #[test]
    fn a_value_opens_with_no_other_key_and_in_no_other_context() {
        let sealed = key(1).seal(&entropy(3), "webhook-1 url", b"https://hooks");
        assert_eq!(key(1).open("webhook-1 url", &sealed), Ok(b"https://hooks".to_vec()));
        assert_eq!(key(2).open("webhook-1 url", &sealed), Err(OpenError::Inauthentic));
        assert_eq!(key(1).open("webhook-2 url", &sealed), Err(OpenError::Inauthentic));
        assert_eq!(key(1).open("webhook-1 secret", &sealed), Err(OpenError::Inauthentic));
    }

    #[test]
    fn equal_values_are_sealed_differently_and_hide_the_text() {
        let (one, other) = (key(1).seal(&entropy(4), "row", b"secret"), key(1).seal(&entropy(5), "row", b"secret"));
        assert_ne!(one, other);
        assert!(!one.windows(6).any(|part| part == b"secret"));
    }

    #[test]
    fn an_unknown_version_is_named() {
        let mut sealed = key(1).seal(&entropy(4), "row", b"text");
        assert_eq!(sealed[0], VERSION);
        sealed[0] = 9;
        assert_eq!(key(1).open("row", &sealed), Err(OpenError::Version(9)));
        assert_eq!(key(1).open("row", &[]), Err(OpenError::Short));
    }

    #[test]
    fn a_key_is_32_bytes_as_base64_or_hex() {
        let sealed = SealingKey::parse(&"ab".repeat(KEY_BYTES)).unwrap().seal(&entropy(4), "row", b"text");
        let same = SealingKey::parse(&format!("{}\n", STANDARD.encode([0xab; KEY_BYTES]))).unwrap();
        assert_eq!(same.open("row", &sealed), Ok(b"text".to_vec()));
        assert_eq!(SealingKey::parse(&"AB".repeat(KEY_BYTES)).unwrap().open("row", &sealed), Ok(b"text".to_vec()));
        let short = STANDARD.encode([1; KEY_BYTES - 1]);
        for text in ["", "secret", &short, &"zz".repeat(KEY_BYTES), &"é".repeat(KEY_BYTES), &"a".repeat(10_000)] {
            assert_eq!(SealingKey::parse(text).unwrap_err(), SealingKeyError, "{text}");
        }
    }

    #[test]
    fn the_debug_form_and_the_error_hide_the_key() {
        assert_eq!(format!("{:?}", key(1)), "SealingKey(…)");
        let words = SealingKey::parse("hunter2").unwrap_err().to_string();
        assert_eq!(words, "not an encryption key: expected 32 bytes as base64 or as 64 hex digits");
    }
}
