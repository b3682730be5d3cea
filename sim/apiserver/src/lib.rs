//! A Kubernetes API server as a deterministic machine: a request and the time go in, a response and events come out.
//!
//! ```
//! use sindri_apiserver::{ApiServer, Request, Response, Timestamp};
//!
//! let now = Timestamp::UNIX_EPOCH;
//! let mut server = ApiServer::new(7, now);
//! let object = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"}}"#;
//! let create = Request::new(http::Method::POST, "/api/v1/namespaces/default/configmaps")?;
//! let create = create.with_body("application/json", object);
//! assert!(matches!(server.handle(now, &create, None), Response::Full { status: 201, .. }));
//! // The name is taken.
//! assert!(matches!(server.handle(now, &create, None), Response::Full { status: 409, .. }));
//! # Ok::<(), sindri_apiserver::RequestError>(())
//! ```
//!
//! A test of a controller uses a `Sandbox` (feature `client`): the machine behind a `kube::Client`, on the time of the test's
//! runtime. The feature `command`, a default, is for the program `sindri-apiserver` only.
//!
//! The machine ([`ApiServer`]) has no clock, no sockets, no threads and no entropy of its own; faults arrive as inputs.
//! The same seed and the same inputs give the same bytes. [`serve()`] puts it behind HTTP.
//!
//! Webhooks are called by the program around it: see [`ApiServer::try_handle`].
//!
//! Left out on purpose: the hand-written validation of most built-in fields. Every request is allowed unless the server has
//! an administrator. The controllers that create and run pods are optional.

mod admission;
mod auth;
mod bootstrap;
mod controllers;
mod discovery;
mod encoding;
mod front;
mod http;
mod object;
mod persistence;
mod printing;
mod process;
mod registry;
mod schema;
mod server;
mod spdy;
mod state;
mod storage;
mod strategy;
mod verbs;
mod writes;

pub use encoding::protobuf;
pub use front::admin::{Admin, FaultRule, NamedFault};
pub use front::gate::{Admission, Clock, Gate, OpenGate};
pub use front::listener::Listener;
#[cfg(feature = "client")]
pub use front::sandbox::Sandbox;
pub use front::serve::{HTTP_2, Port, serve, serve_port};
pub use front::shared::SharedServer;
pub use front::webhook_client::WebhookClient;
pub use front::webhooks::{WebhookCaller, WebhookFuture};
pub use http::request::{BODY_BYTES_MAX, Credentials, Fault, Headers, Impersonation, Request, RequestError, StreamEnd};
pub use http::response::{Response, WatchId};
pub use http::subject::Subject;
pub use http::upgrade::{Upgrade, UpgradeHeaders};
pub use http::webhook_call::{WebhookAnswer, WebhookAnswers, WebhookCall, WebhookReply};
pub use jiff::Timestamp;
pub use object::key::StoredKey;
pub use server::{ApiServer, Handled};
pub use state::certificate_signer::{CertificateSigner, CertificateTerms};
pub use state::container_rules::{ExecRule, PortRule};
pub use state::delays::ControllerDelays;
pub use state::pod_outcome::{PodOutcome, PodRule};
pub use storage::journal::{Actor, Verb, Write};
