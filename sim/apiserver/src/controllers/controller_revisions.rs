//! ControllerRevisions of StatefulSets and DaemonSets: the history of their pod templates.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::template_hash::fnv32;
use super::writes::{create_object, delete_object, number, replace_object};
use crate::object::fields::{name, string_at, uid};
use crate::object::key::{StoredKey, builtin_key};
use crate::object::owners::{controller_of, controller_reference};
use crate::state::server_state::ServerState;
use crate::storage::ids::safe_encode;
use crate::storage::store::Store;

const REVISIONS: (&str, &str) = ("apps", "controllerrevisions");

/// Returns the `data` of a ControllerRevision: a patch that restores the owner's pod template.
fn revision_data(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// Returns the hash of a revision: over its data as Go serializes it, and the number of collisions, always 0 here.
pub(super) fn revision_hash(owner: &Value) -> String {
    let serialized = revision_data(owner).to_string();
    let mut escaped = serialized.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    escaped.push('0');
    safe_encode(&fnv32(escaped.as_bytes()).to_string())
}

/// Returns the revisions of an owner, oldest first.
fn list_revisions(store: &Store, owner: &Value) -> Vec<(StoredKey, Value)> {
    let in_namespace = store.in_namespace(REVISIONS.0, REVISIONS.1, string_at(owner, "/metadata/namespace"));
    let owned = in_namespace.filter(|entry| {
        controller_of(&entry.object).is_some_and(|reference| string_at(reference, "/uid") == uid(owner))
    });
    let mut revisions: Vec<(StoredKey, Value)> =
        owned.map(|entry| (StoredKey::clone(&entry.key), Value::clone(&entry.object))).collect();
    revisions.sort_by_key(|(_, revision)| number(revision, "/revision"));
    revisions
}

/// Returns the name of the revision of an owner's current template. Creates the revision or gives it the newest number if needed.
pub(crate) fn ensure_current_revision(
    state: &mut ServerState,
    now: Timestamp,
    controller: &'static str,
    owner: &Value,
    hash: &str,
    labels: Value,
) -> Option<String> {
    let revisions = list_revisions(&state.store, owner);
    let newest = revisions.last().map_or(0, |(_, revision)| number(revision, "/revision"));
    let data = revision_data(owner);
    if let Some((key, same)) = revisions.iter().find(|(_, revision)| revision["data"] == data) {
        if number(same, "/revision") < newest {
            let mut renewed = same.clone();
            renewed["revision"] = json!(newest + 1);
            replace_object(state, now, controller, key, renewed);
        }
        return Some(key.name.clone());
    }
    let revision_name = format!("{}-{hash}", name(owner));
    let object = json!({
        "metadata": {
            "name": revision_name, "labels": labels, "ownerReferences": [controller_reference(owner)],
            "annotations": owner["metadata"].get("annotations"),
        },
        "data": data, "revision": newest + 1,
    });
    let namespace = string_at(owner, "/metadata/namespace");
    create_object(state, now, controller, REVISIONS, namespace, object).ok()?;
    Some(revision_name)
}

/// Returns the pod template of a revision.
pub(crate) fn template_of_revision(store: &Store, owner: &Value, revision: &str) -> Option<Value> {
    let namespace = string_at(owner, "/metadata/namespace");
    let key = builtin_key("apps", "ControllerRevision", "controllerrevisions", Some(namespace), revision);
    let mut template = store.find_key(&key)?.pointer("/data/spec/template")?.clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    Some(template)
}

/// Deletes the oldest unused revisions beyond the history limit.
pub(crate) fn delete_old_revisions(
    state: &mut ServerState,
    now: Timestamp,
    controller: &'static str,
    owner: &Value,
    in_use: &[String],
) {
    let limit = owner.pointer("/spec/revisionHistoryLimit").and_then(Value::as_u64).unwrap_or(10);
    let unused: Vec<(StoredKey, Value)> =
        list_revisions(&state.store, owner).into_iter().filter(|(key, _)| !in_use.contains(&key.name)).collect();
    let excess = unused.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    for (key, _) in unused.into_iter().take(excess) {
        delete_object(state, now, controller, &key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_the_hash_of_the_real_controller() {
        let container = json!({
            "args": ["<a&b>"], "image": "pg:1", "imagePullPolicy": "IfNotPresent", "name": "db", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        });
        let set = json!({"spec": {"template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
            },
        }}});
        assert_eq!(revision_hash(&set), "57fd5cf7bd");
    }
}
