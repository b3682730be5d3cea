//! Webhooks: signed messages to other systems about events, sent only to addresses that the operator allows.
//!
//! Storage of secrets (`encrypted_parts`), allowed receivers (`target`, `address`, `headers`), one attempt
//! (`send`, `signature`, `connect`, `system`) and the time of the next one (`schedule`). The loop that delivers is in
//! `background`, the event types are in `event_types`.

mod address;
mod connect;
pub(crate) mod encrypted_parts;
pub(crate) mod headers;
pub(crate) mod schedule;
pub(crate) mod send;
mod settings;
pub(crate) mod signature;
mod system;
pub(crate) mod target;
#[cfg(test)]
mod tests;

pub use connect::{Dial, GuardedConnector, Resolve, Trust};
pub use encrypted_parts::DecryptionError;
pub use send::{Connector, Sender};
pub use settings::WebhookSettings;
pub use system::{SystemResolver, TcpDialer, system_connector};
pub use target::TargetPolicy;
