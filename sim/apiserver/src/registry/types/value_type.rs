//! Types of JSON values in schemas.

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Boolean,
    Integer,
    Number,
    String,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    /// Declared fields.
    Struct,
    /// Arbitrary keys, values of one type.
    Map,
    List,
    /// Any JSON value.
    Any,
}
