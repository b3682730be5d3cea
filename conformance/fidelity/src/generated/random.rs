//! Random choices: one stream of random numbers for each sequence, so that a sequence depends only on the seed and its number.

use serde_json::Value;

/// Seeded stream of random choices.
#[derive(Clone, Debug)]
pub struct RandomSource(fastrand::Rng);

impl RandomSource {
    /// Creates the stream of one sequence of a seed.
    #[must_use]
    pub fn new(seed: u64, index: u64) -> Self {
        let mut first = fastrand::Rng::with_seed(seed);
        let base = first.u64(..);
        Self(fastrand::Rng::with_seed(base ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Returns true with this probability in percent.
    pub fn percent(&mut self, percentage: u32) -> bool {
        self.0.u32(0..100) < percentage
    }

    /// Returns a number in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.usize(low..=high.max(low))
    }

    /// Returns one of the values.
    ///
    /// # Panics
    /// If the list is empty; all lists are constants.
    pub fn one<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.0.usize(0..values.len())]
    }

    /// Returns some of the values in their order, each with this probability in percent.
    pub fn some<T: Clone>(&mut self, values: &[T], percentage: u32) -> Vec<T> {
        values.iter().filter(|_| self.percent(percentage)).cloned().collect()
    }

    /// Returns one of the values, with a probability proportional to its weight.
    pub fn weighted<T: Copy>(&mut self, values: &[(u32, T)]) -> T {
        let mut at = self.0.u32(0..values.iter().map(|(weight, _)| weight).sum::<u32>().max(1));
        for (weight, value) in values {
            if at < *weight {
                return *value;
            }
            at -= weight;
        }
        values[0].1
    }

    /// Sets a field with this probability in percent.
    pub fn maybe_set(
        &mut self,
        percentage: u32,
        object: &mut Value,
        field: &str,
        value: impl FnOnce(&mut Self) -> Value,
    ) {
        if self.percent(percentage) {
            object[field] = value(self);
        }
    }
}
