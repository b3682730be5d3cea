//! The order of revisions: sequences that never repeat or decrease, in ranges per epoch of the database.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of sequences per epoch: the first one of an epoch is higher than any of the previous epoch.
const SEQUENCES_PER_EPOCH: i64 = 1 << 40;

/// Global position of a revision. Strictly increasing and never reused, across epochs too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Sequence(pub i64);

impl Sequence {
    /// Returns the epoch in which the sequence was assigned.
    pub fn epoch(self) -> Epoch {
        Epoch(1 + self.0 / SEQUENCES_PER_EPOCH)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 1 + number of restores of the broker's database. Each restore starts a higher range of sequences, so that a revision
/// submitted after it is newer than all that an agent has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub i64);

impl Epoch {
    /// Returns the lower end of the epoch's range; the first assigned sequence is the next one.
    pub fn start(self) -> Sequence {
        Sequence((self.0 - 1) * SEQUENCES_PER_EPOCH)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_starts_above_every_sequence_of_the_previous_one() {
        assert_eq!(Epoch(1).start(), Sequence(0));
        assert_eq!(Sequence(1).epoch(), Epoch(1));
        assert_eq!(Sequence(Epoch(2).start().0 - 1).epoch(), Epoch(1));
        assert_eq!(Sequence(Epoch(2).start().0 + 1).epoch(), Epoch(2));
    }
}
