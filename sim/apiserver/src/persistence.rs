//! The objects of a server as a document, and a server with the objects of such a document.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{array_at, string_at};
use crate::object::key::StoredKey;
use crate::object::stored::Stored;
use crate::state::crd_serving::{CRDS, serve_crd};
use crate::state::server_state::ServerState;
use crate::storage::ids::Ids;
use crate::storage::store::{Event, Store};
use crate::writes::triggers::trigger_controllers;

/// Version of the document.
const VERSION: u64 = 1;

/// Returns the revision and all objects of a store.
pub(crate) fn export(store: &Store) -> Value {
    let entry = |entry: &crate::storage::store::Entry| {
        let StoredKey { group, version, kind, plural, namespace, name } = &*entry.key;
        json!({
            "group": group, "version": version, "kind": kind, "plural": plural, "namespace": namespace, "name": name,
            "object": &***entry.object,
        })
    };
    json!({"version": VERSION, "revision": store.revision(), "objects": store.all().map(entry).collect::<Vec<_>>()})
}

/// Replaces the objects of a server by those of a document. Controllers continue from these. The error is the reason for which
/// the document cannot be read.
pub(crate) fn import(state: &mut ServerState, now: Timestamp, document: &Value) -> Result<(), String> {
    if document["version"] != json!(VERSION) {
        return Err(format!("its version is {}, and this program reads {VERSION}", document["version"]));
    }
    let revision = document["revision"].as_u64().ok_or("it has no revision")?;
    let mut store = Store::default();
    let mut events = Vec::new();
    for entry in array_at(document, "/objects") {
        let text = |field: &str| string_at(entry, &format!("/{field}")).to_owned();
        let key = Arc::new(StoredKey {
            group: text("group"),
            version: text("version"),
            kind: text("kind"),
            plural: text("plural"),
            namespace: entry["namespace"].as_str().map(str::to_owned),
            name: text("name"),
        });
        let object = Arc::new(Stored::new(entry["object"].clone()));
        store.load(key.clone(), object.clone());
        events.push(Event { revision, at: now, key, before: None, object, gone: false });
    }
    store.set_revision(revision);
    state.store = store;
    // The generator starts elsewhere, so that no UID is given twice.
    state.ids = Ids::new(state.ids.next_seed() ^ revision);
    for event in &events {
        if (event.key.group.as_str(), event.key.plural.as_str()) == CRDS {
            serve_crd(state, &event.key.name);
        }
        trigger_controllers(state, now, event);
    }
    Ok(())
}
