//! The one place where changes of the store are made: each is recorded in the journal and triggers controllers.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::triggers::trigger_controllers;
use crate::object::fields::uid;
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Write};
use crate::storage::store::Event;

/// Stores an object. The caller has checked that it differs from the stored one.
pub(crate) fn commit(
    state: &mut ServerState,
    now: Timestamp,
    attribution: &Attribution,
    key: StoredKey,
    object: Value,
) -> Arc<Stored> {
    let event = state.store.put(now, key, object);
    record(state, now, attribution, &event);
    event.object
}

/// Removes an object and returns its last state.
pub(crate) fn remove(
    state: &mut ServerState,
    now: Timestamp,
    attribution: &Attribution,
    key: &StoredKey,
) -> Option<Arc<Stored>> {
    let event = state.store.remove(now, key)?;
    record(state, now, attribution, &event);
    Some(event.object)
}

fn record(state: &mut ServerState, now: Timestamp, attribution: &Attribution, event: &Event) {
    assert!(event.gone || event.before.as_ref() != Some(&event.object), "a write changes something");
    if state.journal.is_enabled() {
        state.journal.push(Write {
            at: now,
            actor: attribution.actor.clone(),
            verb: attribution.verb,
            subresource: attribution.subresource,
            key: event.key.clone(),
            uid: uid(&event.object).to_owned(),
            resource_version: event.revision,
            before: event.before.as_ref().map(|before| before.object()),
            after: (!event.gone).then(|| event.object.object()),
        });
    }
    trigger_controllers(state, now, event);
}
