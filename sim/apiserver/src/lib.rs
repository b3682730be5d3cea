//! A Kubernetes API server as a deterministic machine: a request and the time go in, a response and events come out.
//!
//! The machine ([`ApiServer`]) has no clock, no sockets, no threads and no entropy of its own; faults arrive as inputs.
//! The same seed and the same inputs give the same bytes. [`serve()`] puts it behind HTTP.
//!
//! Left out on purpose: admission webhooks and the hand-written validation of most built-in fields. Every
//! request is allowed unless the server was given an administrator; what makes and runs pods is there for servers that are
//! made with it.

mod access;
mod admin;
mod cells;
mod controllers;
mod conversion;
mod defaults;
mod discovery;
mod error;
mod health;
mod ids;
mod journal;
mod kinds;
mod media;
mod openapi;
mod pointer;
mod policy;
mod prepare;
pub mod protobuf;
mod registry;
mod render;
mod request;
mod response;
mod route;
#[cfg(feature = "client")]
mod sandbox;
mod schedule;
mod selector;
mod serve;
mod server;
mod shared;
mod store;
mod stored;
mod subject;
mod table;
mod types;
mod validate;
mod verbs;
mod watch;
mod yaml;

pub use admin::{Admin, FaultRule, NamedFault};
pub use controllers::{PodFate, PodRule};
pub use jiff::Timestamp;
pub use journal::{Actor, StoredKey, Verb, Write};
pub use request::{Credentials, Fault, Headers, Impersonation, Request, RequestError, StreamEnd};
pub use response::Response;
#[cfg(feature = "client")]
pub use sandbox::Sandbox;
pub use serve::{Admission, Clock, Gate, OpenGate, Port, serve, serve_port};
pub use server::{ApiServer, BODY_BYTES_MAX, Lags};
pub use shared::SharedServer;
pub use subject::Subject;
pub use watch::WatchId;
