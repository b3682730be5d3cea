//! Lifecycle of a CRD: its names are accepted, it is established, served, and finally cleaned up.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::CRDS;
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

fn crd_key(name: &str) -> StoredKey {
    StoredKey {
        group: CRDS.0.to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: CRDS.1.to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

impl ApiServer {
    /// Accepts the names of a CRD, unless another CRD already has its kind.
    pub(super) fn establish_crd(&mut self, now: Timestamp, name: &str) {
        let key = crd_key(name);
        let Some(live) = self.stored(&key).filter(|object| !is_deleting(object)).cloned() else {
            return;
        };
        let mut object = Value::clone(&live);
        let is_taken = self.is_kind_taken(name, &live);
        let at = stamp(now);
        if is_taken {
            let names = &live["spec"]["names"];
            object["status"]["acceptedNames"] =
                json!({"plural": names["plural"], "singular": names["singular"], "kind": ""});
            let message = format!("{} is already in use", names["listKind"]);
            set_condition(&mut object, &at, "NamesAccepted", false, "ListKindConflict", &message);
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
        if !is_taken {
            self.schedule_after(now, self.lags.definition_served, Task::ServeDefinition(name.to_owned()));
        }
    }

    fn is_kind_taken(&self, name: &str, crd: &Value) -> bool {
        let (group, kind) = (text(crd, "/spec/group"), text(crd, "/spec/names/kind"));
        let shelf = self.store.shelf(CRDS.0, CRDS.1);
        let taken = shelf.into_iter().flat_map(|shelf| shelf.values()).any(|other| {
            other.key.name != name
                && text(&other.object, "/spec/group") == group
                && text(&other.object, "/status/acceptedNames/kind") == kind
        });
        taken || self.registry.by_kind(group, kind).is_some_and(|resource| !resource.custom)
    }

    /// Serves the resource of a create at once if its CRD is established but not served yet: the real server makes only creates
    /// wait for it.
    pub(crate) fn await_crd(&mut self, path: &Objects) {
        if groups::is_custom(&path.group) && self.registry.resource(&path.group, &path.plural).is_none() {
            self.serve_crd(&format!("{}.{}", path.plural, path.group));
        }
    }

    /// Makes the kind available in discovery and for requests.
    pub(super) fn serve_crd(&mut self, name: &str) {
        let Some(live) = self.stored(&crd_key(name)).cloned() else { return };
        // A CRD recreated after this task was scheduled has a schedule of its own.
        let is_established = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        if is_deleting(&live) || !list(&live, "/status/conditions").iter().any(is_established) {
            return;
        }
        match Resource::from_definition(&live) {
            Some(resource) => {
                self.convert_stored(&resource);
                self.registry.serve(resource);
            }
            None => self.stop_serving(&live),
        }
    }

    /// Converts the stored custom resources to the current schema: adds defaults and removes unknown fields.
    fn convert_stored(&mut self, resource: &Resource) {
        let storage_version = resource.versions.iter().find(|version| version.name == resource.storage);
        let Some(schema) = storage_version.and_then(|version| version.schema.as_ref()) else { return };
        self.store.reread(&resource.group, &resource.plural, |object| {
            prune(schema, object);
            fill_defaults(schema, object);
        });
    }

    pub(super) fn stop_serving(&mut self, crd: &Value) {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        self.registry.remove(group, plural);
        self.close_watches_of(group, plural);
    }

    /// Deletes the custom resources of a CRD, and the CRD itself once none is left.
    pub(super) fn finalize_crd(&mut self, now: Timestamp, name: &str) {
        let key = crd_key(name);
        let Some(live) = self.stored(&key).filter(|object| is_deleting(object)).cloned() else {
            return;
        };
        let (group, plural) = (text(&live, "/spec/group"), text(&live, "/spec/names/plural"));
        let who = Authorship::controller("crd-finalizer", Verb::Delete);
        let custom_resources: Vec<_> =
            self.store.shelf(group, plural).into_iter().flatten().map(|(_, entry)| entry.key.clone()).collect();
        for custom_resource in &custom_resources {
            self.delete_key(now, &who, custom_resource, Propagation::Background);
        }
        if self.store.shelf(group, plural).is_some_and(|shelf| !shelf.is_empty()) {
            return;
        }
        self.stop_serving(&live);
        let mut released = Value::clone(&live);
        let remaining: Vec<&str> = finalizers(&live).into_iter().filter(|finalizer| *finalizer != CLEANUP).collect();
        set_finalizers(&mut released, &remaining);
        if remaining.is_empty() {
            self.expunge(now, &who, &key);
        } else {
            self.write_as(now, &who, "kube-apiserver", &key, &released);
        }
    }
}

/// Sets a condition. Its `lastTransitionTime` changes only with its status.
pub(crate) fn set_condition(
    object: &mut Value,
    at: &str,
    condition_type: &str,
    holds: bool,
    reason: &str,
    message: &str,
) {
    let status = if holds { "True" } else { "False" };
    let old = list(object, "/status/conditions").iter().find(|condition| condition["type"] == condition_type);
    let since =
        old.filter(|old| old["status"] == status).map_or_else(|| json!(at), |old| old["lastTransitionTime"].clone());
    let condition = json!({
        "type": condition_type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    let mut conditions = list(object, "/status/conditions").to_vec();
    match conditions.iter_mut().find(|condition| condition["type"] == condition_type) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
    if !object.get("status").is_some_and(Value::is_object) {
        object["status"] = json!({});
    }
    object["status"]["conditions"] = json!(conditions);
}
