//! Metrics and readiness, and the HTTP endpoints that return them.

pub(crate) mod metrics;
pub(crate) mod probes;
pub(crate) mod readiness;
