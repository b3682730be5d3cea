//! The Go types of the built-in kinds, and the normalization of objects by them.

pub(crate) mod decode;
pub(crate) mod encode;
mod field_form;
mod schema;
mod schema_type;
mod struct_defaults;
mod type_table;
pub(crate) mod typed_merge;
mod value_type;

pub(crate) use schema_type::SchemaType;
pub(crate) use type_table::{METADATA, types};
pub(crate) use value_type::ValueType;
