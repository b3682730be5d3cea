//! The server behind HTTP: serving on a port, the administration API, and a sandbox for tests.

pub(crate) mod admin;
pub(crate) mod gate;
mod http_2;
pub(crate) mod listener;
#[cfg(feature = "client")]
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod shared;
mod snapshots;
mod streams;
pub(crate) mod webhook_client;
mod webhook_trust;
pub(crate) mod webhooks;
