//! The typed client of the broker's API: one method per operation, one error type.
//!
//! ```no_run
//! use hyper_util::client::legacy::connect::HttpConnector;
//! use sindri_client::{Client, Trust, with_tls};
//!
//! # async fn print_states(key: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let mut connector = HttpConnector::new();
//! connector.enforce_http(false);
//! let broker = "https://broker.example".parse()?;
//! let client = Client::new(with_tls(connector, &Trust::from_system()?), broker, key)?;
//! for stack in client.get_overview(None).await?.stacks {
//!     for assignment in stack.assignments {
//!         println!("{} on {}: {}", stack.name, assignment.agent_id, assignment.state);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The connector is injected, so that the same client works over TCP, over TLS and inside a simulated network. The
//! client neither retries nor caches; callers decide with [`ClientError::is_transient`].

mod admins;
mod agents;
mod approvals;
mod audit;
mod bounded_http;
mod broker_kind;
mod client;
mod connection_failure;
mod connector;
mod error;
mod generators;
mod labels;
mod outcomes;
mod overview;
mod percent_encode;
mod proposals;
mod root_cause;
mod secure_url;
mod stacks;
mod status;
mod target_state;
mod tls;
mod transport;
mod webhooks;

pub use audit::AuditQuery;
pub use bounded_http::BoundedHttp;
pub use client::{Client, Limits};
pub use connection_failure::ConnectionFailure;
pub use connector::{Connector, ConnectorStream};
pub use error::{ClientError, ClientSetupError};
pub use labels::AgentPolicies;
pub use overview::EventQuery;
pub use percent_encode::percent_encode;
pub use root_cause::root_cause;
pub use secure_url::{is_secure_endpoint, is_secure_url};
pub use target_state::{KnownState, PollResponse, TargetStateResponse};
pub use tls::{Trust, TrustError, with_tls};
pub use webhooks::CreatedWebhook;
