//! Documents about the server itself: API groups, OpenAPI and health.

pub(crate) mod documents;
pub(crate) mod groups;
mod health;
pub(crate) mod metrics;
mod openapi;
