//! Lifecycle of a namespace: the initial ones, and termination.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::conditions::set_condition;
use crate::object::fields::{finalizers, format_timestamp, is_deleting};
use crate::object::key::{StoredKey, builtin_key};
use crate::registry::types::types;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::storage::store::Store;
use crate::strategy::defaults::set_defaults;
use crate::strategy::kinds::namespace::Namespace;
use crate::verbs::delete::{Propagation, delete_stored};
use crate::writes::commit::remove;
use crate::writes::tracked::write_tracked;

/// Creates one of the initial namespaces.
pub(crate) fn create_namespace(state: &mut ServerState, now: Timestamp, name: &str) {
    let mut namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "uid": state.ids.uid(), "creationTimestamp": format_timestamp(now)},
    });
    if let Some(schema_type) = types().find_kind("", "v1", "Namespace") {
        set_defaults(&Namespace, schema_type, &mut namespace);
    }
    namespace["spec"] = json!({"finalizers": ["kubernetes"]});
    namespace["status"] = json!({"phase": "Active"});
    let attribution = Attribution::controller("kube-apiserver", Verb::Create);
    write_tracked(
        state,
        now,
        &attribution,
        "kube-apiserver",
        &builtin_key("", "Namespace", "namespaces", None, name),
        &namespace,
    );
}

/// Deletes the content of a namespace, and the namespace itself once it is empty. Objects with finalizers delay it.
pub(crate) fn terminate_namespace(state: &mut ServerState, now: Timestamp, name: &str) {
    let Some(namespace) = state.store.find("", "namespaces", None, name).filter(|object| is_deleting(object)).cloned()
    else {
        return;
    };
    let attribution = Attribution::controller("namespace-controller", Verb::Delete);
    let content: Vec<_> = keys_in_namespace(&state.store, name);
    for key in &content {
        delete_stored(state, now, &attribution, key, Propagation::Background);
    }
    let key = builtin_key("", "Namespace", "namespaces", None, name);
    if !keys_in_namespace(&state.store, name).is_empty() {
        report_remaining_content(state, now, &key, &namespace);
        return;
    }
    if finalizers(&namespace).is_empty() {
        remove(state, now, &attribution, &key);
    } else {
        let mut emptied = Value::clone(&namespace);
        emptied["spec"] = json!({});
        write_tracked(state, now, &attribution, "kube-controller-manager", &key, &emptied);
    }
}

/// Sets the conditions of a namespace that name the remaining resources and finalizers.
fn report_remaining_content(state: &mut ServerState, now: Timestamp, key: &StoredKey, namespace: &Value) {
    let mut resource_counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut finalizer_counts: BTreeMap<String, usize> = BTreeMap::new();
    for remaining in keys_in_namespace(&state.store, &key.name) {
        *resource_counts.entry(format!("{}.{}", remaining.plural, remaining.group)).or_default() += 1;
        for finalizer in state.store.find_key(&remaining).map(|object| finalizers(object)).unwrap_or_default() {
            *finalizer_counts.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let summarize = |counts: &BTreeMap<String, usize>, verb: &str| -> String {
        let parts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
        parts.join(", ")
    };
    let remaining = format!("Some resources are remaining: {}", summarize(&resource_counts, "has"));
    let waiting =
        format!("Some content in the namespace has finalizers remaining: {}", summarize(&finalizer_counts, "in"));
    let deleted = "All content successfully deleted, may be waiting on finalization";
    let (discovered, parsed) = ("All resources successfully discovered", "All legacy kube types successfully parsed");
    let mut object = namespace.clone();
    let timestamp = format_timestamp(now);
    let conditions = [
        ("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", discovered),
        ("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", parsed),
        ("NamespaceDeletionContentFailure", false, "ContentDeleted", deleted),
        ("NamespaceContentRemaining", true, "SomeResourcesRemain", remaining.as_str()),
        ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", waiting.as_str()),
    ];
    for (condition_type, holds, reason, message) in conditions {
        set_condition(&mut object, &timestamp, condition_type, holds, reason, message);
    }
    let mut attribution = Attribution::controller("namespace-controller", Verb::Update);
    attribution.subresource = "status";
    write_tracked(state, now, &attribution, "kube-controller-manager", key, &object);
}

fn keys_in_namespace(store: &Store, namespace: &str) -> Vec<std::sync::Arc<StoredKey>> {
    let content = store.all().filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
    content.map(|entry| entry.key.clone()).collect()
}
