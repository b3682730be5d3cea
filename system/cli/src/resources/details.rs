//! Columns of objects that contain another one.

use std::collections::BTreeMap;

use crate::output::{Cell, Column, Resource};

/// Returns the columns of a contained object.
pub(super) fn nested_columns<T: 'static, U: Resource + 'static>(contained: fn(&T) -> &U) -> Vec<Column<T>> {
    let to_outer = |column: Column<U>| {
        let Column { header, is_wide, cell } = column;
        Column { header, is_wide, cell: Box::new(move |outer: &T| cell(contained(outer))) }
    };
    U::columns().into_iter().map(to_outer).collect()
}

/// Formats labels; `None` if the key may not read them.
pub(super) fn format_labels(labels: Option<&[String]>) -> Cell {
    Cell::optional(labels.filter(|labels| !labels.is_empty()).map(|labels| labels.join(",")))
}

/// Formats annotations; `None` if the key may not read them.
pub(super) fn format_annotations(annotations: Option<&BTreeMap<String, String>>) -> Cell {
    let pairs = annotations.filter(|annotations| !annotations.is_empty()).map(|annotations| {
        annotations.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    });
    Cell::optional(pairs)
}
