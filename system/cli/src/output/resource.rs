//! Description of an object for every format.

use serde::Serialize;

use super::cell::Cell;

/// An object that commands print. JSON and YAML have its fields.
pub(crate) trait Resource: Serialize {
    /// Kind in `kind/name`.
    const KIND: &'static str;

    /// Sentence for people in place of a table without rows.
    const NONE: &'static str = "there is nothing to show";

    /// Returns the name in `kind/name`.
    fn name(&self) -> String;

    /// Returns the columns of its table.
    fn columns() -> Vec<Column<Self>>;
}

/// A column of a table.
pub(crate) struct Column<T: ?Sized> {
    pub header: &'static str,
    /// True if only `--output wide` and the output of one object have the column.
    pub is_wide: bool,
    pub cell: Box<dyn Fn(&T) -> Cell>,
}

impl<T: ?Sized> Column<T> {
    /// Creates a column that every table has.
    pub(crate) fn new(header: &'static str, cell: impl Fn(&T) -> Cell + 'static) -> Self {
        Self { header, is_wide: false, cell: Box::new(cell) }
    }

    /// Creates a column that only wide tables and the output of one object have.
    pub(crate) fn wide(header: &'static str, cell: impl Fn(&T) -> Cell + 'static) -> Self {
        Self { header, is_wide: true, cell: Box::new(cell) }
    }
}

/// Returns `kind/name` of an object.
pub(crate) fn full_name<T: Resource>(item: &T) -> String {
    format!("{}/{}", T::KIND, item.name())
}
