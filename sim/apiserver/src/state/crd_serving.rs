//! Serving the resources of established CustomResourceDefinitions.

use serde_json::Value;

use super::server_state::ServerState;
use crate::discovery::groups;
use crate::http::route::Objects;
use crate::object::fields::{array_at, is_deleting, string_at};
use crate::object::key::StoredKey;
use crate::registry::resource::Resource;
use crate::schema::custom_resource::{fill_defaults, prune};

pub(crate) const CRDS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

pub(crate) fn crd_key(name: &str) -> StoredKey {
    StoredKey {
        group: CRDS.0.to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: CRDS.1.to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

/// Serves the resource of a create at once if its CRD is established but not served yet: the real server makes only creates
/// wait for it.
pub(crate) fn serve_established_crd(state: &mut ServerState, path: &Objects) {
    if groups::is_custom(&path.group) && state.registry.resource(&path.group, &path.plural).is_none() {
        serve_crd(state, &format!("{}.{}", path.plural, path.group));
    }
}

/// Makes the kind available in discovery and for requests.
pub(crate) fn serve_crd(state: &mut ServerState, name: &str) {
    let Some(live) = state.store.find_key(&crd_key(name)).cloned() else { return };
    // A CRD recreated after this task was scheduled has a schedule of its own.
    let is_established = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    if is_deleting(&live) || !array_at(&live, "/status/conditions").iter().any(is_established) {
        return;
    }
    match Resource::from_crd(&live) {
        Some(resource) => {
            convert_stored(state, &resource);
            state.registry.serve(resource);
        }
        None => stop_serving(state, &live),
    }
}

/// Converts the stored custom resources to the current schema: adds defaults and removes unknown fields.
fn convert_stored(state: &mut ServerState, resource: &Resource) {
    let storage_version = resource.versions.iter().find(|version| version.name == resource.storage);
    let Some(schema) = storage_version.and_then(|version| version.schema.as_ref()) else { return };
    state.store.rewrite_all(&resource.group, &resource.plural, |object| {
        prune(schema, object);
        fill_defaults(schema, object);
    });
}

pub(crate) fn stop_serving(state: &mut ServerState, crd: &Value) {
    let (group, plural) = (string_at(crd, "/spec/group"), string_at(crd, "/spec/names/plural"));
    state.registry.remove(group, plural);
    state.watches.close_resource(group, plural);
}
