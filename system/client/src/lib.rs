//! The typed client of the broker's API: one method per operation, one error type.
//!
//! The connector is handed in, so that the same client speaks over TCP, over TLS or inside a simulated
//! network. It decides nothing: no retries, no caching; a caller asks [`ClientError::is_transient`].

mod agents;
mod approvals;
mod client;
mod error;
mod generators;
mod labels;
mod outcomes;
mod percent_encode;
mod stacks;
mod status;
mod target_state;
mod tls;
mod transport;

pub use client::{Client, Limits};
pub use error::{ClientError, ClientSetupError};
pub use percent_encode::percent_encode;
pub use target_state::TargetStateResponse;
pub use tls::{Trust, TrustError, with_tls};
pub use transport::{Connector, ConnectorStream, root_cause};
