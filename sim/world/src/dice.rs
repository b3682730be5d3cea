//! Where chance comes from: one small generator per purpose, all of them derived from the seed of the run.
//!
//! Each purpose has its own stream, so that one more draw in one place does not shift every other choice.

use std::sync::{Arc, Mutex, PoisonError};

use sindri_model::Entropy;

/// A seeded stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The stream of one purpose in the run of one seed.
    pub fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a: any stable mixing of the name will do, the generator does the rest.
        let mixed = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ seed.rotate_left(32), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(mixed ^ seed);
        dice.roll();
        dice
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low { low } else { low + self.roll() % (high - low + 1) }
    }

    /// True in `parts` of `whole` cases.
    pub fn chance(&mut self, parts: u64, whole: u64) -> bool {
        self.roll() % whole < parts
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = (self.roll() % (last as u64 + 1)) as usize;
            items.swap(last, chosen);
        }
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.roll().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }

    /// This stream as the entropy of a host.
    pub fn into_entropy(self) -> Entropy {
        let shared = Arc::new(Mutex::new(self));
        Entropy::new(move |bytes| shared.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_the_seed_and_on_the_purpose() {
        let first = |seed, purpose: &str| Dice::new(seed, purpose).roll();
        assert_eq!(first(1, "net"), first(1, "net"));
        assert_ne!(first(1, "net"), first(2, "net"));
        assert_ne!(first(1, "net"), first(1, "faults"));
    }
}
