//! Writes of the controllers: objects, statuses, conditions, and Kubernetes events.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::template_hash::fnv32a;
use crate::http::error::ApiError;
use crate::object::fields::{array_at, format_timestamp, metadata, name, string_at, uid};
use crate::object::key::{StoredKey, builtin_key};
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::verbs::create_internal::{ControllerIdentity, create_for_controller};
use crate::verbs::delete::{Propagation, delete_stored};
use crate::writes::tracked::write_tracked;

/// Field manager of the control plane's controllers.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// Returns the number at a pointer, 0 if there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    crate::object::fields::value_at(object, pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Sets a count of a status; 0 is omitted, as Go omits it.
pub(super) fn set_count(status: &mut Value, field: &str, count: i64) {
    match status.as_object_mut() {
        Some(fields) if count == 0 => drop(fields.remove(field)),
        _ => status[field] = json!(count),
    }
}

/// Returns one condition of an object.
pub(super) fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a Value> {
    array_at(object, "/status/conditions").iter().find(|condition| condition["type"] == condition_type)
}

/// True if an object has this condition with status `True`.
pub(super) fn is_condition_true(object: &Value, condition_type: &str) -> bool {
    condition(object, condition_type).is_some_and(|condition| condition["status"] == "True")
}

/// Returns the message of an error.
pub(super) fn error_message(error: &ApiError) -> String {
    string_at(&error.to_value(), "/message").to_owned()
}

/// True if an error means that an object of this name already exists.
pub(super) fn is_already_exists(error: &ApiError) -> bool {
    error.to_value()["reason"] == "AlreadyExists"
}

/// Creates an object in a namespace for a controller of the control plane.
pub(crate) fn create_object(
    state: &mut ServerState,
    now: Timestamp,
    controller: &'static str,
    resource: (&str, &str),
    namespace: &str,
    object: Value,
) -> Result<Arc<Value>, ApiError> {
    create_for_controller(
        state,
        now,
        ControllerIdentity { controller, manager: MANAGER },
        resource,
        Some(namespace),
        object,
    )
}

/// Replaces an object; a change of its spec increments the generation.
pub(crate) fn replace_object(
    state: &mut ServerState,
    now: Timestamp,
    controller: &'static str,
    key: &StoredKey,
    mut object: Value,
) {
    let Some(live) = state.store.find_key(key).cloned() else { return };
    if live.get("spec") != object.get("spec") && live.pointer("/metadata/generation").is_some() {
        metadata(&mut object).insert("generation".to_owned(), json!(number(&live, "/metadata/generation") + 1));
    }
    write_tracked(state, now, &Attribution::controller(controller, Verb::Update), MANAGER, key, &object);
}

/// Replaces the status of an object.
pub(crate) fn replace_status(
    state: &mut ServerState,
    now: Timestamp,
    (controller, manager): (&'static str, &str),
    key: &StoredKey,
    object: &Value,
) {
    if state.store.find_key(key).is_none_or(|live| **live == *object) {
        return;
    }
    let mut attribution = Attribution::controller(controller, Verb::Update);
    attribution.subresource = "status";
    write_tracked(state, now, &attribution, manager, key, object);
}

/// Deletes an object with background propagation.
pub(crate) fn delete_object(state: &mut ServerState, now: Timestamp, controller: &'static str, key: &StoredKey) {
    delete_stored(state, now, &Attribution::controller(controller, Verb::Delete), key, Propagation::Background);
}

/// Records a Kubernetes event about an object, or increments the count of the same event.
pub(crate) fn record_event(
    state: &mut ServerState,
    now: Timestamp,
    component: &'static str,
    about: &Value,
    (event_type, reason): (&str, &str),
    message: &str,
) {
    let namespace =
        Some(string_at(about, "/metadata/namespace")).filter(|namespace| !namespace.is_empty()).unwrap_or("default");
    let unique = fnv32a(format!("{}/{component}/{reason}/{message}", uid(about)).as_bytes());
    let event_name = format!("{}.{unique:08x}", name(about));
    let key = builtin_key("", "Event", "events", Some(namespace), &event_name);
    let maker = ControllerIdentity { controller: component, manager: component };
    if let Some(existing) = state.store.find_key(&key).cloned() {
        let mut repeated = Value::clone(&existing);
        repeated["count"] = json!(number(&existing, "/count") + 1);
        repeated["lastTimestamp"] = json!(format_timestamp(now));
        let attribution = Attribution::controller(component, Verb::Patch);
        return write_tracked(state, now, &attribution, component, &key, &repeated);
    }
    let event = json!({
        "metadata": {"name": event_name},
        "involvedObject": {
            "apiVersion": about["apiVersion"], "kind": about["kind"], "name": name(about), "uid": uid(about),
            "namespace": about["metadata"].get("namespace"),
            "resourceVersion": about["metadata"].get("resourceVersion"),
        },
        "type": event_type, "reason": reason, "message": message, "count": 1,
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
        "firstTimestamp": format_timestamp(now), "lastTimestamp": format_timestamp(now), "eventTime": null,
    });
    // A namespace that is being deleted rejects new events; they are lost.
    let _rejected = create_for_controller(state, now, maker, ("", "events"), Some(namespace), event);
}
