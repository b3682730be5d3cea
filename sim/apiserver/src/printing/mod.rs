//! Objects as clients get them: in a version, as metadata, or as rows of a table.

pub(crate) mod cells;
pub(crate) mod render;
pub(crate) mod table;
