//! Webhooks: telling other systems what happened, signed, and without being led where nobody should go.
//!
//! Who wants what (`subscription`), how it is kept (`seal`), where it may
//! go (`target`, `address`, `headers`), one attempt (`send`, `signature`, `connect`), and when the next one follows
//! (`schedule`). `deliver` takes messages from the store and settles them.

mod address;
mod connect;
mod deliver;
pub(crate) mod headers;
pub(crate) mod schedule;
mod seal;
pub(crate) mod sealed;
pub(crate) mod send;
pub(crate) mod signature;
pub(crate) mod subscription;
mod system;
pub(crate) mod target;
#[cfg(test)]
mod tests;

pub use connect::{Dial, GuardedConnector, Resolve, Trust};
pub use deliver::WebhookSettings;
pub use seal::{SealingKey, SealingKeyError};
pub use sealed::Unopened;
pub use send::{Connector, Sender};
pub use system::{SystemResolver, TcpDialer, system_connector};
pub use target::TargetPolicy;
