//! Operators and functions on values, one file per library. They do not overflow, and take steps in proportion to their
//! work.

pub(crate) mod context;
pub(crate) mod convert;
mod format;
mod lists;
pub(crate) mod network;
mod operators;
mod optional;
mod quantities;
mod texts;
mod times;

use context::{Implementation, Table};

const TABLES: [Table; 9] = [
    operators::TABLE,
    convert::TABLE,
    texts::TABLE,
    format::TABLE,
    lists::TABLE,
    times::TABLE,
    optional::TABLE,
    quantities::TABLE,
    network::TABLE,
];

/// Finds a function by its name.
pub(crate) fn find(name: &str) -> Option<Implementation> {
    TABLES.iter().find_map(|table| table.iter().find(|(known, _)| *known == name)).map(|(_, function)| *function)
}

/// Returns the names of all functions.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter().map(|(name, _)| *name))
}
