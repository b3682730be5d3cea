//! Objects as clients get them: in a version, as metadata, or as rows of a table.

mod cells;
pub(crate) mod convert;
pub(crate) mod format;
pub(crate) mod render;
pub(crate) mod table;
