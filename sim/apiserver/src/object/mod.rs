//! Kubernetes objects as JSON values: access to their fields, their keys, their stored form, and errors about fields.

pub(crate) mod field_error;
pub(crate) mod fields;
pub(crate) mod key;
pub(crate) mod stored;
