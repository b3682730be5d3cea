//! The HTTP API: the table of routes and the router made of it.
//!
//! `http` is what every route shares, `resources` has one file per noun. Not implemented: templates, work orders,
//! diagnostics.

mod direct_poll;
pub(crate) mod http;
mod resources;
mod router;
mod routes;

pub(crate) use direct_poll::DirectPoll;
pub use http::error_response::ErrorResponse;
pub use resources::admins::create_admin_offline;
pub use router::router;
pub use routes::openapi_document;
