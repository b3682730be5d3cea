//! Findings of all checks.

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path below the project's directory, with a line where there is one.
    pub place: String,
    pub message: String,
}
