//! Writes to an API server, as tests and traces show them.

use sindri_apiserver::{Actor, Write};

/// Prefix of the user agent of every guest; its name follows.
pub const GUEST: &str = "guest/";

/// Returns true if a guest made this write.
pub fn is_guest_write(write: &Write) -> bool {
    matches!(&write.actor, Actor::Client { user_agent, .. } if user_agent.starts_with(GUEST))
}

/// Formats a write for the trace: `Update deployments default/shop by guest/database at 31`.
pub fn describe(write: &Write) -> String {
    let actor = match &write.actor {
        Actor::Client { user_agent, .. } => user_agent.as_str(),
        Actor::Controller(name) => name,
    };
    let key = &write.key;
    let namespace = key.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let part = if write.subresource.is_empty() { String::new() } else { format!("/{}", write.subresource) };
    format!("{:?} {}{part} {namespace}{} by {actor} at {}", write.verb, key.plural, key.name, write.resource_version)
}
