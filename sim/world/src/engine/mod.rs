//! Engines: they drive hosts through virtual time.
//!
//! The fast engine enters a host only when something happens to it. The turmoil engine steps every host at every tick;
//! it is slower and portable, and it checks the first: both run the same programs.

mod fast_engine;
mod interface;
mod kind;
mod sockets;
mod turmoil_engine;

pub use crate::net::{HostId, Latency};
pub use interface::{Engine, EnteredHosts, Program};
pub use kind::EngineKind;
pub use sockets::{Connector, HostNetwork, Listener, Stream};
