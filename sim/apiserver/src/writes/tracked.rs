//! Writes of controllers, tracked under the name of their field manager.

use jiff::Timestamp;
use serde_json::{Value, json};
use sindri_merge::{Shape, Writer, track_update};

use super::commit::commit;
use crate::object::fields::{format_timestamp, string_at};
use crate::object::key::StoredKey;
use crate::state::server_state::ServerState;
use crate::storage::journal::Attribution;

/// Writes an object on behalf of a controller, with its managed fields, and only if something changed.
pub(crate) fn write_tracked(
    state: &mut ServerState,
    now: Timestamp,
    attribution: &Attribution,
    manager: &str,
    key: &StoredKey,
    object: &Value,
) {
    let live = state.store.find_key(key).cloned();
    let target = state.registry.preferred(&key.group, &key.plural);
    let unknown;
    let (shape, blank) = match &target {
        Some(target) => (&target.version.shape, &target.version.blank),
        None => {
            unknown = (Shape::object(), json!({}));
            (&unknown.0, &unknown.1)
        }
    };
    let (api_version, timestamp) = (string_at(object, "/apiVersion"), format_timestamp(now));
    let writer = Writer { manager, api_version, subresource: attribution.subresource, now: &timestamp, blank };
    // Tracking cannot fail here: objects with malformed managedFields are rejected before they are stored.
    let tracked = track_update(shape, live.as_deref(), object, &writer).unwrap_or_else(|_| object.clone());
    if live.is_none_or(|live| *live != tracked) {
        commit(state, now, attribution, key.clone(), tracked);
    }
}
