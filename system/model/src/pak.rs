//! Prefixed API keys (PAK): `brokkr_<short>_<long>`. The short token identifies the key, the long one authenticates it.
//!
//! Only the digest of the long token is stored; the key itself is returned once, on creation.

use std::fmt;

use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::checksum::sha256;
use crate::entropy::Entropy;

const PREFIX: &str = "brokkr";
const SHORT_PREFIX: &str = "BR";
const SHORT_RANDOM_CHARS: usize = 6;
const LONG_BYTES: usize = 24;
/// Maximum length of a text that is parsed as a key.
const KEY_CHARS_MAX: usize = 128;
/// Base58: no characters that look alike, and no `_`, which separates the parts.
const ALPHABET: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// A complete key. Its `Debug` output contains only the short token, so that logs do not leak the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Pak {
    short: String,
    long: String,
}

/// Stored part of a key: the hex SHA-256 of its long token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PakDigest(pub String);

/// The text is not a key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not an access key: expected brokkr_<short>_<long>")]
pub struct PakFormatError;

impl Pak {
    /// Creates a new key.
    pub fn generate(entropy: &Entropy) -> Self {
        let random: [u8; SHORT_RANDOM_CHARS] = entropy.bytes();
        let tail: String = random.iter().map(|byte| ALPHABET[usize::from(*byte) % ALPHABET.len()] as char).collect();
        let secret: [u8; LONG_BYTES] = entropy.bytes();
        Self { short: format!("{SHORT_PREFIX}{tail}"), long: bs58::encode(secret).into_string() }
    }

    /// Parses a key.
    pub fn parse(text: &str) -> Result<Self, PakFormatError> {
        if text.len() > KEY_CHARS_MAX {
            return Err(PakFormatError);
        }
        let mut parts = text.split('_');
        let (Some(PREFIX), Some(short), Some(long), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(PakFormatError);
        };
        if short.is_empty() || long.is_empty() {
            return Err(PakFormatError);
        }
        Ok(Self { short: short.to_owned(), long: long.to_owned() })
    }

    /// Returns the token for lookup and display, which is not secret.
    pub fn short(&self) -> &str {
        &self.short
    }

    /// Returns the digest to store.
    pub fn digest(&self) -> PakDigest {
        PakDigest(sha256(&self.long))
    }

    /// Returns true if this key has the stored digest. The comparison takes constant time.
    pub fn matches(&self, stored: &PakDigest) -> bool {
        self.digest().0.as_bytes().ct_eq(stored.0.as_bytes()).into()
    }

    /// Returns the complete key, secret included. Return it once, in response to the request that created it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}_{}_{}", self.short, self.long)
    }
}

impl fmt::Debug for Pak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}_{}_…", self.short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting_entropy() -> Entropy {
        Entropy::new(|bytes| bytes.iter_mut().zip(7..).for_each(|(byte, value)| *byte = value))
    }

    #[test]
    fn a_parsed_key_matches_its_own_digest_only() {
        let key = Pak::generate(&counting_entropy());
        let again = Pak::parse(&key.reveal()).unwrap();
        assert_eq!(key.short().len(), 8);
        assert!(key.short().starts_with("BR"));
        assert!(again.matches(&key.digest()));
        assert!(!Pak::parse("brokkr_BRabcdef_wrong").unwrap().matches(&key.digest()));
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let key = Pak::generate(&counting_entropy());
        let secret = key.reveal().rsplit('_').next().unwrap().to_owned();
        assert!(!format!("{key:?}").contains(&secret));
    }

    #[test]
    fn a_text_that_is_not_a_key_is_rejected() {
        for text in ["", "brokkr", "brokkr__", "brokkr_a_", "other_a_b", "brokkr_a_b_c", &"x".repeat(500)] {
            assert_eq!(Pak::parse(text).unwrap_err(), PakFormatError, "{text}");
        }
    }
}
