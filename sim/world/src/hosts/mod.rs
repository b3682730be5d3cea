//! Programs of the hosts: the production broker and agent with a virtual clock, network, disk and entropy injected, the
//! simulated API server, and the operator.

mod agent;
mod api_server;
mod broker;
mod broker_connector;
mod http_port;
mod operator;

pub use agent::{AgentKey, AgentSetup, agent};
pub use api_server::api_server;
pub use broker::{Database, broker};
pub use operator::{OperatorJob, operator};
