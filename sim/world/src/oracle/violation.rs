//! A property that did not hold.

/// A property that did not hold in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the property, such as `no-leak`.
    pub oracle: &'static str,
    /// One sentence with the objects concerned.
    pub message: String,
}
