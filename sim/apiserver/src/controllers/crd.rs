//! The life of a custom resource definition: accepted, established, served, and finally cleaned up.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::DEFINITIONS;
use crate::discovery::groups;
use crate::http::route::Objects;
use crate::object::fields::{finalizers, is_deleting, list, set_finalizers, stamp, text};
use crate::object::key::StoredKey;
use crate::registry::resource::Resource;
use crate::schema::custom_resource::{fill_defaults, prune};
use crate::server::{ApiServer, Authorship};
use crate::state::schedule::Task;
use crate::storage::journal::Verb;
use crate::verbs::{CLEANUP, Propagation};

fn definition_key(name: &str) -> StoredKey {
    StoredKey {
        group: DEFINITIONS.0.to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: DEFINITIONS.1.to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

impl ApiServer {
    /// Accepts the names of a definition, unless another one has its kind already.
    pub(super) fn establish_definition(&mut self, now: Timestamp, name: &str) {
        let key = definition_key(name);
        let Some(live) = self.stored(&key).filter(|found| !is_deleting(found)).cloned() else {
            return;
        };
        let mut object = Value::clone(&live);
        let taken = self.kind_is_taken(name, &live);
        let at = stamp(now);
        if taken {
            let names = &live["spec"]["names"];
            object["status"]["acceptedNames"] =
                json!({"plural": names["plural"], "singular": names["singular"], "kind": ""});
            let taken = format!("{} is already in use", names["listKind"]);
            set_condition(&mut object, &at, "NamesAccepted", false, "ListKindConflict", &taken);
            set_condition(&mut object, &at, "Established", false, "NotAccepted", "not all names are accepted");
        } else {
            object["status"]["acceptedNames"] = live["spec"]["names"].clone();
            set_condition(&mut object, &at, "NamesAccepted", true, "NoConflicts", "no conflicts found");
            set_condition(
                &mut object,
                &at,
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
            );
        }
        let mut who = Authorship::controller("crd-establishing-controller", Verb::Update);
        who.subresource = "status";
        self.write_as(now, &who, "kube-apiserver", &key, &object);
        if !taken {
            self.schedule_after(now, self.lags.definition_served, Task::ServeDefinition(name.to_owned()));
        }
    }

    fn kind_is_taken(&self, name: &str, definition: &Value) -> bool {
        let (group, kind) = (text(definition, "/spec/group"), text(definition, "/spec/names/kind"));
        let shelf = self.store.shelf(DEFINITIONS.0, DEFINITIONS.1);
        let taken = shelf.into_iter().flat_map(|shelf| shelf.values()).any(|other| {
            other.key.name != name
                && text(&other.object, "/spec/group") == group
                && text(&other.object, "/status/acceptedNames/kind") == kind
        });
        taken || self.registry.by_kind(group, kind).is_some_and(|resource| !resource.custom)
    }

    /// A create waits for a kind that is established and not served yet, as in the real server; nothing else does.
    pub(crate) fn await_definition(&mut self, path: &Objects) {
        if groups::is_custom(&path.group) && self.registry.resource(&path.group, &path.plural).is_none() {
            self.serve_definition(&format!("{}.{}", path.plural, path.group));
        }
    }

    /// From now on the kind is in discovery and can be asked for.
    pub(super) fn serve_definition(&mut self, name: &str) {
        let Some(live) = self.stored(&definition_key(name)).cloned() else { return };
        // A successor of the definition that this was planned for takes its own time.
        let is_established = |found: &Value| found["type"] == "Established" && found["status"] == "True";
        if is_deleting(&live) || !list(&live, "/status/conditions").iter().any(is_established) {
            return;
        }
        match Resource::from_definition(&live) {
            Some(resource) => {
                self.reread(&resource);
                self.registry.serve(resource);
            }
            None => self.stop_serving(&live),
        }
    }

    /// What is stored is read by the schema of now: with its defaults, and without what it does not know.
    fn reread(&mut self, resource: &Resource) {
        let stored_in = resource.versions.iter().find(|version| version.name == resource.storage);
        let Some(schema) = stored_in.and_then(|version| version.schema.as_ref()) else { return };
        self.store.reread(&resource.group, &resource.plural, |object| {
            prune(schema, object);
            fill_defaults(schema, object);
        });
    }

    pub(super) fn stop_serving(&mut self, definition: &Value) {
        let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
        self.registry.remove(group, plural);
        self.close_watches_of(group, plural);
    }

    /// Deletes the instances of a definition, and the definition when none is left.
    pub(super) fn finalize_definition(&mut self, now: Timestamp, name: &str) {
        let key = definition_key(name);
        let Some(live) = self.stored(&key).filter(|found| is_deleting(found)).cloned() else {
            return;
        };
        let (group, plural) = (text(&live, "/spec/group"), text(&live, "/spec/names/plural"));
        let who = Authorship::controller("crd-finalizer", Verb::Delete);
        let instances: Vec<_> =
            self.store.shelf(group, plural).into_iter().flatten().map(|(_, entry)| entry.key.clone()).collect();
        for instance in &instances {
            self.delete_key(now, &who, instance, Propagation::Background);
        }
        if self.store.shelf(group, plural).is_some_and(|shelf| !shelf.is_empty()) {
            return;
        }
        self.stop_serving(&live);
        let mut released = Value::clone(&live);
        let left: Vec<&str> = finalizers(&live).into_iter().filter(|finalizer| *finalizer != CLEANUP).collect();
        set_finalizers(&mut released, &left);
        if left.is_empty() {
            self.expunge(now, &who, &key);
        } else {
            self.write_as(now, &who, "kube-apiserver", &key, &released);
        }
    }
}

/// Sets a condition; its time moves only when its status does.
pub(crate) fn set_condition(object: &mut Value, at: &str, kind: &str, holds: bool, reason: &str, message: &str) {
    let status = if holds { "True" } else { "False" };
    let old = list(object, "/status/conditions").iter().find(|condition| condition["type"] == kind);
    let since =
        old.filter(|old| old["status"] == status).map_or_else(|| json!(at), |old| old["lastTransitionTime"].clone());
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    let mut conditions = list(object, "/status/conditions").to_vec();
    match conditions.iter_mut().find(|condition| condition["type"] == kind) {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
    if !object.get("status").is_some_and(Value::is_object) {
        object["status"] = json!({});
    }
    object["status"]["conditions"] = json!(conditions);
}
