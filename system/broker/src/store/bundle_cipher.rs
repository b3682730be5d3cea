//! Encryption at rest of bundles.
//!
//! An encrypted bundle is stored in the column of plain ones: a character with which no bundle begins, and the ciphertext in
//! base64. So rows of both kinds are read side by side. Checksums are always those of the plain text.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sindri_model::{Entropy, RevisionId};
use thiserror::Error;

use crate::encryption_key::EncryptionKey;

/// First character of an encrypted bundle. YAML does not allow it, so no plain bundle has it.
pub(crate) const ENCRYPTED: char = '\u{1}';

/// Encrypts and decrypts stored bundles. `Debug` prints nothing of its key.
#[derive(Clone)]
pub struct BundleCipher {
    key: EncryptionKey,
    encrypts_new: bool,
}

/// An encrypted bundle cannot be decrypted: the key is missing or another one, or the row was changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the bundle of revision {0} is encrypted and cannot be decrypted with this key")]
pub struct BundleDecryptionError(pub RevisionId);

impl BundleCipher {
    /// Creates a cipher that decrypts bundles, and encrypts new ones if `encrypts_new`.
    pub fn new(key: EncryptionKey, encrypts_new: bool) -> Self {
        Self { key, encrypts_new }
    }

    /// Returns true if new bundles are encrypted.
    pub fn encrypts_new(&self) -> bool {
        self.encrypts_new
    }

    /// Encrypts a plain bundle. An empty one stays empty.
    pub fn encrypt(&self, entropy: &Entropy, revision: RevisionId, plain: &str) -> String {
        self.encrypt_text(entropy, &context(revision), plain)
    }

    /// Encrypts another text of a bundle, which only the same name decrypts. An empty one stays empty.
    pub(crate) fn encrypt_text(&self, entropy: &Entropy, name: &str, plain: &str) -> String {
        if plain.is_empty() {
            return String::new();
        }
        let encrypted = self.key.encrypt(entropy, name, plain.as_bytes());
        let mut text = String::with_capacity(1 + encrypted.len().div_ceil(3) * 4);
        text.push(ENCRYPTED);
        STANDARD.encode_string(encrypted, &mut text);
        text
    }

    /// Returns the plain bundle of a stored text, which may be encrypted or not.
    pub(crate) fn decrypt(&self, revision: RevisionId, stored: &str) -> Result<String, BundleDecryptionError> {
        self.decrypt_text(&context(revision), stored).ok_or(BundleDecryptionError(revision))
    }

    fn decrypt_text(&self, name: &str, stored: &str) -> Option<String> {
        let Some(encoded) = stored.strip_prefix(ENCRYPTED) else { return Some(stored.to_owned()) };
        let plain = self.key.decrypt(name, &STANDARD.decode(encoded).ok()?).ok()?;
        String::from_utf8(plain).ok()
    }
}

/// Returns true if a stored text is encrypted.
pub(crate) fn is_encrypted(stored: &str) -> bool {
    stored.starts_with(ENCRYPTED)
}

/// Returns the plain bundle of a stored text; without a cipher only a plain one can be read.
pub(crate) fn open_bundle(
    cipher: Option<&BundleCipher>,
    revision: RevisionId,
    stored: String,
) -> Result<String, BundleDecryptionError> {
    open_text(cipher, &context(revision), stored).ok_or(BundleDecryptionError(revision))
}

/// Returns the plain text of one that was stored under a name; `None` if it cannot be decrypted.
pub(crate) fn open_text(cipher: Option<&BundleCipher>, name: &str, stored: String) -> Option<String> {
    if !is_encrypted(&stored) {
        return Some(stored);
    }
    cipher?.decrypt_text(name, &stored)
}

/// Returns the context, so that an encrypted bundle cannot be moved to another revision.
fn context(revision: RevisionId) -> String {
    format!("revision {revision} bundle")
}

impl fmt::Debug for BundleCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleCipher").field("encrypts_new", &self.encrypts_new).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use sindri_model::yaml::parse_documents;

    use super::*;

    fn cipher(digits: &str) -> BundleCipher {
        BundleCipher::new(EncryptionKey::parse(&digits.repeat(32)).unwrap(), true)
    }

    fn revision(byte: u8) -> RevisionId {
        RevisionId::generate(&Entropy::new(move |bytes| bytes.fill(byte)))
    }

    #[test]
    fn a_bundle_is_decrypted_with_its_key_for_its_revision_only() {
        let (entropy, plain) = (Entropy::new(|bytes| bytes.fill(3)), "kind: Secret # é");
        let stored = cipher("ab").encrypt(&entropy, revision(1), plain);
        assert!(is_encrypted(&stored) && !stored.contains("Secret"));
        assert_eq!(cipher("ab").decrypt(revision(1), &stored).as_deref(), Ok(plain));
        assert_eq!(cipher("ab").decrypt(revision(2), &stored), Err(BundleDecryptionError(revision(2))));
        assert_eq!(cipher("cd").decrypt(revision(1), &stored), Err(BundleDecryptionError(revision(1))));
        assert_eq!(open_bundle(None, revision(1), stored), Err(BundleDecryptionError(revision(1))));
    }

    #[test]
    fn plain_and_empty_bundles_are_read_as_they_are() {
        let entropy = Entropy::new(|bytes| bytes.fill(3));
        assert_eq!(cipher("ab").encrypt(&entropy, revision(1), ""), "");
        for stored in ["", "a: 1"] {
            assert_eq!(cipher("ab").decrypt(revision(1), stored).as_deref(), Ok(stored));
            assert_eq!(open_bundle(None, revision(1), stored.to_owned()).as_deref(), Ok(stored));
        }
    }

    #[test]
    fn no_accepted_bundle_begins_with_the_character_of_encrypted_ones() {
        assert!(parse_documents("\u{1}YTogMQ==").is_err());
    }
}
