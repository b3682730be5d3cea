//! Budget of an evaluation: each evaluated node is one step, and comparisons, loops and results cost further steps in
//! proportion to their length.

use crate::evaluation_error::EvaluationError;

/// Maximum number of steps of an evaluation.
pub const STEPS_MAX: usize = 100_000;
/// Number of bytes that are read in one step.
const BYTES_PER_STEP: usize = 16;

/// Remaining steps.
pub(crate) struct Steps(usize);

impl Steps {
    pub fn full() -> Self {
        Self(STEPS_MAX)
    }

    pub fn take(&mut self, steps: usize) -> Result<(), EvaluationError> {
        self.0 = self.0.checked_sub(steps).ok_or(EvaluationError::BudgetExceeded)?;
        Ok(())
    }

    /// Takes the steps for reading so many bytes.
    pub fn take_for_bytes(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.take(bytes / BYTES_PER_STEP)
    }
}
