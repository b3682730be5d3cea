//! Where chance comes from: one stream of numbers for each sequence, so that a sequence depends on nothing but the seed
//! and its number.

use serde_json::Value;

/// A seeded stream of choices.
#[derive(Clone, Debug)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// The stream of one sequence of a seed.
    #[must_use]
    pub fn new(seed: u64, index: u64) -> Self {
        let mut first = fastrand::Rng::with_seed(seed);
        let base = first.u64(..);
        Self(fastrand::Rng::with_seed(base ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, of_hundred: u32) -> bool {
        self.0.u32(0..100) < of_hundred
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.usize(low..=high.max(low))
    }

    /// One of some things.
    ///
    /// # Panics
    /// When there are none; the lists are written down here.
    pub fn one<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.0.usize(0..things.len())]
    }

    /// Some of the things, in their order: each with the chance of so many of a hundred.
    pub fn some<T: Clone>(&mut self, things: &[T], of_hundred: u32) -> Vec<T> {
        things.iter().filter(|_| self.percent(of_hundred)).cloned().collect()
    }

    /// One of some things, the more often the heavier it is.
    pub fn weighed<T: Copy>(&mut self, things: &[(u32, T)]) -> T {
        let mut at = self.0.u32(0..things.iter().map(|(weight, _)| weight).sum::<u32>().max(1));
        for (weight, thing) in things {
            if at < *weight {
                return *thing;
            }
            at -= weight;
        }
        things[0].1
    }

    /// Sets a field in so many of a hundred cases.
    pub fn maybe(&mut self, of_hundred: u32, object: &mut Value, field: &str, value: impl FnOnce(&mut Self) -> Value) {
        if self.percent(of_hundred) {
            object[field] = value(self);
        }
    }
}
