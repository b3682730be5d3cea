//! How much an evaluation may do: each part of a rule is a step whenever it is evaluated, and whatever is compared, walked
//! or made costs as many more as it is long.

use crate::failure::Failure;

/// The most steps of an evaluation.
pub const STEPS_MAX: usize = 100_000;
/// So many bytes are read in one step.
const BYTES_A_STEP: usize = 16;

/// The steps that are left.
pub(crate) struct Steps(usize);

impl Steps {
    pub fn all() -> Self {
        Self(STEPS_MAX)
    }

    pub fn take(&mut self, steps: usize) -> Result<(), Failure> {
        self.0 = self.0.checked_sub(steps).ok_or(Failure::Exhausted)?;
        Ok(())
    }

    /// For looking at so many bytes.
    pub fn read(&mut self, bytes: usize) -> Result<(), Failure> {
        self.take(bytes / BYTES_A_STEP)
    }
}
