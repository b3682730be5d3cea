//! Kubernetes objects as JSON values: access to their fields, their keys, their stored form, and errors about fields.

pub(crate) mod conditions;
pub(crate) mod containers;
pub(crate) mod field_error;
pub(crate) mod fields;
pub(crate) mod finalizers;
pub(crate) mod json_patch;
pub(crate) mod key;
pub(crate) mod label_selectors;
pub(crate) mod owners;
pub(crate) mod protection;
pub(crate) mod stored;
