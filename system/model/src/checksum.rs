//! Checksum of a bundle: the hex SHA-256 of its exact text.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Hex SHA-256 of the text of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Checksum(String);

impl Checksum {
    /// Computes the checksum of `text`.
    pub fn compute(text: &str) -> Self {
        Self(sha256(text))
    }

    /// Returns the hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the hex SHA-256 of `text`.
pub(crate) fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_hex_sha256_of_the_exact_text() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Checksum::compute("abc").as_str(), expected);
        assert_ne!(Checksum::compute("abc\n").as_str(), expected);
    }
}
