//! Random numbers: one small generator per purpose, all derived from the seed of the run.
//!
//! Each purpose has its own stream, so that one more draw for one purpose does not shift the choices of the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sindri_model::Entropy;

/// A seeded stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates the stream of one purpose in the run of one seed.
    pub fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a: any stable mixing of the name will do, the generator does the rest.
        let mixed = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ seed.rotate_left(32), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut rng = Self(mixed ^ seed);
        rng.next_u64();
        rng
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        if high <= low { low } else { low + self.next_u64() % (high - low + 1) }
    }

    /// Returns true in `parts` of `whole` cases.
    pub fn chance(&mut self, parts: u64, whole: u64) -> bool {
        self.next_u64() % whole < parts
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = (self.next_u64() % (last as u64 + 1)) as usize;
            items.swap(last, chosen);
        }
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }

    /// Converts the stream into the entropy of a host.
    pub fn into_entropy(self) -> Entropy {
        let shared = Arc::new(Mutex::new(self));
        Entropy::new(move |bytes| shared.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes))
    }
}

/// Returns a function that makes the entropy of each process of a host, a different one after each restart.
pub fn entropy_source(seed: u64, host: &str) -> impl Fn() -> Entropy + use<> {
    let (host, started) = (host.to_owned(), AtomicU64::new(0));
    move || {
        let process = started.fetch_add(1, Ordering::Relaxed);
        SeededRng::new(seed, &format!("entropy {host} {process}")).into_entropy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_the_seed_and_on_the_purpose() {
        let first = |seed, purpose: &str| SeededRng::new(seed, purpose).next_u64();
        assert_eq!(first(1, "net"), first(1, "net"));
        assert_ne!(first(1, "net"), first(2, "net"));
        assert_ne!(first(1, "net"), first(1, "faults"));
    }
}
