//! The key of what is encrypted at rest: the secrets of subscriptions (URL, header and signing secret), and bundles.
//!
//! An encrypted value is a version, a nonce, and the ChaCha20-Poly1305 ciphertext. The context of a value, such as its row and
//! column, is authenticated with it, so that a value cannot be moved. Nonces are random; the number of values of a broker is
//! far below the number at which two nonces are likely to be equal.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sindri_model::Entropy;
use thiserror::Error;

/// First byte of an encrypted value; another cipher would have another version.
const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
/// Length of the longest text form of a key, which is hex.
const KEY_CHARS_MAX: usize = 2 * KEY_BYTES;

/// Key that encrypts secrets. `Debug` prints nothing of it.
#[derive(Clone)]
pub struct EncryptionKey(LessSafeKey);

/// The text is not a key. The error does not contain it, because it may be a key with a typing mistake.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not an encryption key: expected {KEY_BYTES} bytes as base64 or as {KEY_CHARS_MAX} hex digits")]
pub struct EncryptionKeyError;

/// An encrypted value cannot be decrypted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum CiphertextError {
    #[error("the encrypted value is too short")]
    TooShort,
    #[error("the encrypted value has version {0}, which this broker does not support")]
    Version(u8),
    #[error("the encrypted value was encrypted with another key, was moved, or was changed")]
    NotAuthentic,
}

impl EncryptionKey {
    /// Parses a key: 32 bytes as base64 or as hex.
    pub fn parse(text: &str) -> Result<Self, EncryptionKeyError> {
        let text = text.trim();
        let bytes = match text.len() {
            KEY_CHARS_MAX => hex::decode(text).ok(),
            0..KEY_CHARS_MAX => STANDARD.decode(text).ok(),
            _ => None,
        };
        let key = bytes.and_then(|bytes| UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok());
        key.map(|key| Self(LessSafeKey::new(key))).ok_or(EncryptionKeyError)
    }

    /// Encrypts a value for one context.
    pub(crate) fn encrypt(&self, entropy: &Entropy, context: &str, plain: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = entropy.bytes();
        let mut text = plain.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), associated_data(context), &mut text)
            .expect("no value is longer than the cipher can take");
        [&[VERSION][..], &nonce, &text].concat()
    }

    /// Decrypts a value that was encrypted with this key for this context.
    pub(crate) fn decrypt(&self, context: &str, encrypted: &[u8]) -> Result<Vec<u8>, CiphertextError> {
        let (&version, rest) = encrypted.split_first().ok_or(CiphertextError::TooShort)?;
        if version != VERSION {
            return Err(CiphertextError::Version(version));
        }
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or(CiphertextError::TooShort)?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.0.open_in_place(nonce, associated_data(context), &mut text);
        plain.map(|plain| plain.to_vec()).map_err(|_| CiphertextError::NotAuthentic)
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(…)")
    }
}

/// Returns the authenticated data: the context and the version, so that neither can be changed.
fn associated_data(context: &str) -> Aad<Vec<u8>> {
    Aad::from([&[VERSION], context.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> EncryptionKey {
        EncryptionKey::parse(&STANDARD.encode([byte; KEY_BYTES])).unwrap()
    }

    fn entropy(byte: u8) -> Entropy {
        Entropy::new(move |bytes| bytes.fill(byte))
    }

    proptest! {
        #[test]
        fn an_encrypted_value_is_decrypted_in_its_context(plain: Vec<u8>, context: String, nonce: u8) {
            let encrypted = key(1).encrypt(&entropy(nonce), &context, &plain);
            prop_assert_eq!(key(1).decrypt(&context, &encrypted), Ok(plain));
        }

        #[test]
        fn a_changed_byte_is_detected(plain: Vec<u8>, at: prop::sample::Index, bit in 0_u32..8) {
            let mut encrypted = key(1).encrypt(&entropy(2), "row", &plain);
            let at = at.index(encrypted.len());
            encrypted[at] ^= 1 << bit;
            prop_assert!(key(1).decrypt("row", &encrypted).is_err());
        }

        #[test]
        fn a_truncated_value_is_detected(plain: Vec<u8>, cut: prop::sample::Index) {
            let encrypted = key(1).encrypt(&entropy(2), "row", &plain);
            prop_assert!(key(1).decrypt("row", &encrypted[..cut.index(encrypted.len())]).is_err());
        }

        #[test]
        fn random_bytes_are_never_decrypted(encrypted: Vec<u8>) {
            prop_assert!(key(1).decrypt("row", &encrypted).is_err());
        }
    }

    #[test]
    fn a_value_is_decrypted_with_no_other_key_and_in_no_other_context() {
        let encrypted = key(1).encrypt(&entropy(3), "webhook-1 url", b"https://hooks");
        assert_eq!(key(1).decrypt("webhook-1 url", &encrypted), Ok(b"https://hooks".to_vec()));
        assert_eq!(key(2).decrypt("webhook-1 url", &encrypted), Err(CiphertextError::NotAuthentic));
        assert_eq!(key(1).decrypt("webhook-2 url", &encrypted), Err(CiphertextError::NotAuthentic));
        assert_eq!(key(1).decrypt("webhook-1 secret", &encrypted), Err(CiphertextError::NotAuthentic));
    }

    #[test]
    fn equal_values_have_different_ciphertexts_without_the_text() {
        let (one, other) =
            (key(1).encrypt(&entropy(4), "row", b"secret"), key(1).encrypt(&entropy(5), "row", b"secret"));
        assert_ne!(one, other);
        assert!(!one.windows(6).any(|part| part == b"secret"));
    }

    #[test]
    fn the_error_has_an_unknown_version() {
        let mut encrypted = key(1).encrypt(&entropy(4), "row", b"text");
        assert_eq!(encrypted[0], VERSION);
        encrypted[0] = 9;
        assert_eq!(key(1).decrypt("row", &encrypted), Err(CiphertextError::Version(9)));
        assert_eq!(key(1).decrypt("row", &[]), Err(CiphertextError::TooShort));
    }

    #[test]
    fn a_key_is_32_bytes_as_base64_or_hex() {
        let encrypted = EncryptionKey::parse(&"ab".repeat(KEY_BYTES)).unwrap().encrypt(&entropy(4), "row", b"text");
        let same = EncryptionKey::parse(&format!("{}\n", STANDARD.encode([0xab; KEY_BYTES]))).unwrap();
        assert_eq!(same.decrypt("row", &encrypted), Ok(b"text".to_vec()));
        assert_eq!(
            EncryptionKey::parse(&"AB".repeat(KEY_BYTES)).unwrap().decrypt("row", &encrypted),
            Ok(b"text".to_vec())
        );
        let short = STANDARD.encode([1; KEY_BYTES - 1]);
        for text in ["", "secret", &short, &"zz".repeat(KEY_BYTES), &"é".repeat(KEY_BYTES), &"a".repeat(10_000)] {
            assert_eq!(EncryptionKey::parse(text).unwrap_err(), EncryptionKeyError, "{text}");
        }
    }

    #[test]
    fn debug_and_error_do_not_contain_the_key() {
        assert_eq!(format!("{:?}", key(1)), "EncryptionKey(…)");
        let message = EncryptionKey::parse("hunter2").unwrap_err().to_string();
        assert_eq!(message, "not an encryption key: expected 32 bytes as base64 or as 64 hex digits");
    }
}
