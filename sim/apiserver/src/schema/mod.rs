//! Structural OpenAPI schemas of CustomResourceDefinitions: checks of the schemas themselves, and what they do to custom resources.

mod cel_declarations;
pub(crate) mod cel_rules;
pub(crate) mod crd_schema;
pub(crate) mod custom_resource;
mod formats;
mod structural;
mod values;
