//! Source of generated values: UIDs, name suffixes and random choices, from a generator with a seed.

use sha2::{Digest, Sha256};

/// SplitMix64 generator: accepts every seed, and its state is one number.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    state: u64,
}

/// Characters of generated names, as in the real server.
const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Maps a text to the characters of generated names, as for hashes in names.
pub(crate) fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(NAME_CHARACTERS[usize::from(byte) % NAME_CHARACTERS.len()])).collect()
}

/// Returns a UID that depends on some texts only.
pub(crate) fn digest_uid(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finalize()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a seed for another generator.
    pub(crate) fn next_seed(&mut self) -> u64 {
        self.next()
    }

    /// Returns true with this probability in percent.
    pub(crate) fn percent(&mut self, of_hundred: u8) -> bool {
        self.next() % 100 < u64::from(of_hundred)
    }

    /// Returns a version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Returns the five characters at the end of a generated name.
    pub(crate) fn name_suffix(&mut self) -> String {
        let mut drawn = self.next();
        let count = NAME_CHARACTERS.len() as u64;
        (0..5)
            .map(|_| {
                let index = usize::try_from(drawn % count).expect("smaller than the number of characters");
                drawn /= count;
                char::from(NAME_CHARACTERS[index])
            })
            .collect()
    }
}
