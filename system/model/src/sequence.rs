//! The order of revisions: a sequence that never repeats or goes back, within an epoch of the database.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many sequences an epoch has: the first one of an epoch is higher than any of the epoch before.
const SEQUENCES_PER_EPOCH: i64 = 1 << 40;

/// The global position of a revision. Strictly increasing, never reused, across epochs too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Sequence(pub i64);

impl Sequence {
    /// The epoch in which it was given out.
    pub fn epoch(self) -> Epoch {
        Epoch(1 + self.0 / SEQUENCES_PER_EPOCH)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The life of a database: a restored backup starts a new one, and with it a higher range of sequences, so that
/// what is submitted after a restore is newer than anything that any agent has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub i64);

impl Epoch {
    /// Where the sequences of this epoch start; the first one given out is the next.
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
    fn a_new_epoch_begins_above_every_sequence_of_the_one_before() {
        assert_eq!(Epoch(1).start(), Sequence(0));
        assert_eq!(Sequence(1).epoch(), Epoch(1));
        assert_eq!(Sequence(Epoch(2).start().0 - 1).epoch(), Epoch(1));
        assert_eq!(Sequence(Epoch(2).start().0 + 1).epoch(), Epoch(2));
    }
}
