//! HTTP as every route uses it: authentication, the parts of requests, responses, errors, pagination, compression, the
//! request log and the OpenAPI description. Knows no resource.

pub(crate) mod authentication;
pub(crate) mod compression;
mod connection;
pub(crate) mod connection_info;
pub(crate) mod denial;
pub(crate) mod describe;
pub(crate) mod error_response;
pub(crate) mod extract;
mod held_body;
pub(crate) mod large_list;
mod login_failures;
pub(crate) mod openapi;
pub(crate) mod pagination;
mod people;
pub(crate) mod request_limits;
pub(crate) mod request_log;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod target_version;
pub(crate) mod write_context;
