//! Requests and responses: paths, media types, and errors as `Status` objects.

pub(crate) mod error;
pub(crate) mod error_response;
pub(crate) mod media;
mod negotiation;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod route;
pub(crate) mod subject;
pub(crate) mod upgrade;
pub(crate) mod webhook_call;
