//! Documents about the server itself: API groups, OpenAPI and health.

pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod openapi;
