//! How the controllers of workloads write: objects, statuses, conditions, and events about what they did.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::template_hash::fnv32a;
use crate::http::error::ApiError;
use crate::object::fields::{list, metadata, name, stamp, text, uid};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::storage::journal::Verb;
use crate::verbs::{Maker, Propagation};

/// The manager of everything that the controllers of the control plane write.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// Where an object of a built-in kind is stored.
pub(super) fn key_of(group: &str, kind: &str, plural: &str, namespace: Option<&str>, name: &str) -> StoredKey {
    StoredKey {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

/// The number at a pointer, 0 when there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    crate::object::fields::at(object, pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Sets a count of a status; none is left out, as Go leaves it out.
pub(super) fn set_count(status: &mut Value, field: &str, count: i64) {
    match status.as_object_mut() {
        Some(fields) if count == 0 => drop(fields.remove(field)),
        _ => status[field] = json!(count),
    }
}

/// The reference by which something is owned and controlled.
pub(super) fn controller_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The reference to whoever controls an object.
pub(super) fn controlled_by(object: &Value) -> Option<&Value> {
    list(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
}

/// One condition of an object.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|condition| condition["type"] == kind)
}

/// Whether a condition holds.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// What an error says.
pub(super) fn words(error: &ApiError) -> String {
    text(&error.to_value(), "/message").to_owned()
}

/// Whether an error says that something of this name is there already.
pub(super) fn is_taken(error: &ApiError) -> bool {
    error.to_value()["reason"] == "AlreadyExists"
}

impl ApiServer {
    /// Creates an object in a namespace for a controller of the control plane.
    pub(super) fn make(
        &mut self,
        now: Timestamp,
        controller: &'static str,
        resource: (&str, &str),
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Value>, ApiError> {
        self.create_inside(now, Maker { controller, manager: MANAGER }, resource, Some(namespace), object)
    }

    /// Replaces an object; a change of what is wanted counts as a generation.
    pub(super) fn replace(&mut self, now: Timestamp, controller: &'static str, key: &StoredKey, mut object: Value) {
        let Some(live) = self.stored(key).cloned() else { return };
        if live.get("spec") != object.get("spec") && live.pointer("/metadata/generation").is_some() {
            metadata(&mut object).insert("generation".to_owned(), json!(number(&live, "/metadata/generation") + 1));
        }
        self.write_as(now, &Authorship::controller(controller, Verb::Update), MANAGER, key, &object);
    }

    /// Replaces the status of an object.
    pub(super) fn replace_status(
        &mut self,
        now: Timestamp,
        (controller, manager): (&'static str, &str),
        key: &StoredKey,
        object: &Value,
    ) {
        if self.stored(key).is_none_or(|live| **live == *object) {
            return;
        }
        let mut who = Authorship::controller(controller, Verb::Update);
        who.subresource = "status";
        self.write_as(now, &who, manager, key, object);
    }

    /// Deletes an object in the background.
    pub(super) fn discard(&mut self, now: Timestamp, controller: &'static str, key: &StoredKey) {
        self.delete_key(now, &Authorship::controller(controller, Verb::Delete), key, Propagation::Background);
    }

    /// Tells what was done to an object, or counts that it was done again.
    pub(super) fn tell(
        &mut self,
        now: Timestamp,
        component: &'static str,
        about: &Value,
        (kind, reason): (&str, &str),
        message: &str,
    ) {
        let namespace = Some(text(about, "/metadata/namespace")).filter(|found| !found.is_empty()).unwrap_or("default");
        let unique = fnv32a(format!("{}/{component}/{reason}/{message}", uid(about)).as_bytes());
        let event_name = format!("{}.{unique:08x}", name(about));
        let key = key_of("", "Event", "events", Some(namespace), &event_name);
        let maker = Maker { controller: component, manager: component };
        if let Some(known) = self.stored(&key).cloned() {
            let mut again = Value::clone(&known);
            again["count"] = json!(number(&known, "/count") + 1);
            again["lastTimestamp"] = json!(stamp(now));
            let who = Authorship::controller(component, Verb::Patch);
            return self.write_as(now, &who, component, &key, &again);
        }
        let event = json!({
            "metadata": {"name": event_name},
            "involvedObject": {
                "apiVersion": about["apiVersion"], "kind": about["kind"], "name": name(about), "uid": uid(about),
                "namespace": about["metadata"].get("namespace"),
                "resourceVersion": about["metadata"].get("resourceVersion"),
            },
            "type": kind, "reason": reason, "message": message, "count": 1,
            "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
            "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "eventTime": null,
        });
        // In a namespace that is being deleted nothing is told any more.
        let _refused = self.create_inside(now, maker, ("", "events"), Some(namespace), event);
    }
}
