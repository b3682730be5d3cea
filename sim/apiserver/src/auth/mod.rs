//! Authentication and authorization of requests.

pub(crate) mod access;
pub(crate) mod authenticator;
pub(crate) mod authorization_request;
pub(crate) mod escalation;
pub(crate) mod flow;
pub(crate) mod rbac;
pub(crate) mod user;
