//! The injected source of random bytes. `main` passes that of the operating system, the simulation a seeded one.

use std::fmt;
use std::sync::Arc;

/// A source of random bytes.
#[derive(Clone)]
pub struct Entropy(Arc<Fill>);

type Fill = dyn Fn(&mut [u8]) + Send + Sync;

impl Entropy {
    /// Creates a source whose bytes `fill` writes.
    pub fn new(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    /// Returns `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0)(&mut bytes);
        bytes
    }

    /// Returns a random number in `0..bound`, or 0 if `bound` is 0.
    pub fn number_below(&self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        u64::from_le_bytes(self.bytes()) % bound
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}
