//! Webhooks: telling other systems what happened, signed, and without being led where nobody should go.
//!
//! Here is everything that needs no database: who wants what (`subscription`), how it is kept (`seal`), where it may
//! go (`target`, `address`, `headers`), one attempt (`send`, `signature`, `connect`), and when the next one follows
//! (`schedule`).

mod address;
mod connect;
mod headers;
mod schedule;
pub(crate) mod seal;
mod send;
mod signature;
pub(crate) mod subscription;
mod system;
mod target;
#[cfg(test)]
mod tests;

pub use connect::{Dial, GuardedConnector, Resolve, Trust};
pub use seal::{SealingKey, SealingKeyError};
pub use send::{Connector, Sender};
pub use system::{SystemResolver, TcpDialer, system_connector};
pub use target::TargetPolicy;
