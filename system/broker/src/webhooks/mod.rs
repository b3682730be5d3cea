//! Webhooks: telling other systems what happened, signed, and without being led where nobody should go.
//!
//! Who wants what (`subscription`), how it is kept (`seal`), where it may
//! go (`target`, `address`, `headers`), one attempt (`send`, `signature`, `connect`), and when the next one follows
//! (`schedule`). `deliver` takes messages from the store and settles them.

mod address;
mod connect;
pub(crate) mod headers;
pub(crate) mod schedule;
pub(crate) mod sealed_parts;
mod sealing_key;
pub(crate) mod send;
mod settings;
pub(crate) mod signature;
mod system;
pub(crate) mod target;
#[cfg(test)]
mod tests;

pub use connect::{Dial, GuardedConnector, Resolve, Trust};
pub use sealed_parts::Unopened;
pub use sealing_key::{SealingKey, SealingKeyError};
pub use send::{Connector, Sender};
pub use settings::WebhookSettings;
pub use system::{SystemResolver, TcpDialer, system_connector};
pub use target::TargetPolicy;
