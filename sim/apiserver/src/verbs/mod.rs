//! The verbs of the API, one file each.

mod admit;
mod body;
mod connect;
pub(crate) mod convert_by_webhook;
mod create;
pub(crate) mod create_internal;
pub(crate) mod delete;
pub(crate) mod dispatch;
mod last_applied;
mod list_options;
mod manager_versions;
mod normalize;
mod object_parts;
mod patch;
mod pod_log;
mod read;
mod resource_request;
mod review;
mod scale;
mod subresource;
mod update;
