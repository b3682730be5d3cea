//! Objects as clients get them: in a version, as metadata, or as rows of a table.

mod cells;
pub(crate) mod convert;
pub(crate) mod format;
mod infrastructure_cells;
mod json_path;
mod pod_cells;
mod policy_cells;
pub(crate) mod render;
pub(crate) mod table;
