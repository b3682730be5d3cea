//! The built-in kinds, from the recorded discovery of a real server, with the properties that discovery does not contain.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use sindri_merge::Shape;

use crate::object::fields::{array_at, string_at};
use crate::registry::resource::{Resource, Version};
use crate::registry::types::{encode, types};

const DISCOVERY: &str = include_str!(concat!(env!("OUT_DIR"), "/discovery.json"));

/// Kinds with `metadata.generation`.
const WITH_GENERATION: [&str; 27] = [
    "CSIDriver",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "EndpointSlice",
    "FlowSchema",
    "Ingress",
    "IngressClass",
    "Job",
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ReplicaSet",
    "ReplicationController",
    "ResourceClaim",
    "ResourceSlice",
    "StatefulSet",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "DeviceClass",
    "ServiceCIDR",
    "IPAddress",
];

/// Deprecated kinds, with their warnings.
const DEPRECATED: [(&str, &str); 2] = [
    ("ComponentStatus", "v1 ComponentStatus is deprecated in v1.19+"),
    ("Endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

/// Returns the recorded discovery of a real server.
pub(crate) fn recorded() -> &'static Value {
    static READ: OnceLock<Value> = OnceLock::new();
    READ.get_or_init(|| serde_json::from_str(DISCOVERY).unwrap_or_default())
}

/// Returns the built-in resources, which are parsed once and shared by every server.
pub(crate) fn built_in() -> &'static [Arc<Resource>] {
    static READ: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
    READ.get_or_init(|| {
        let mut resources: BTreeMap<(String, String), Resource> = BTreeMap::new();
        for document in ["/core/items", "/groups/items"] {
            for item in array_at(recorded(), document) {
                let group = string_at(item, "/metadata/name");
                for version in array_at(item, "/versions") {
                    for entry in array_at(version, "/resources") {
                        add(&mut resources, group, string_at(version, "/version"), entry);
                    }
                }
            }
        }
        resources.into_values().map(Arc::new).collect()
    })
}

fn add(resources: &mut BTreeMap<(String, String), Resource>, group: &str, version: &str, entry: &Value) {
    let texts = |pointer: &str| array_at(entry, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let (plural, kind) = (string_at(entry, "/resource").to_owned(), string_at(entry, "/responseKind/kind").to_owned());
    let built = read_version(group, version, &kind, entry);
    let found = resources.entry((group.to_owned(), plural.clone())).or_insert_with(|| Resource {
        group: group.to_owned(),
        plural,
        singular: string_at(entry, "/singularResource").to_owned(),
        list_kind: format!("{kind}List"),
        short_names: texts("/shortNames"),
        categories: texts("/categories"),
        namespaced: string_at(entry, "/scope") == "Namespaced",
        generation: WITH_GENERATION.contains(&kind.as_str()),
        verbs: texts("/verbs"),
        custom: false,
        storage: version.to_owned(),
        versions: Vec::new(),
        conversion: None,
        kind,
    });
    found.versions.push(Arc::new(built));
}

fn read_version(group: &str, version: &str, kind: &str, entry: &Value) -> Version {
    let typed = types().find_kind(group, version, kind);
    let shape =
        typed.and_then(|typed| types().shape(&typed.name)).map_or_else(Shape::object, |shape| Shape::clone(shape));
    let mut subresources = BTreeMap::new();
    for subresource in array_at(entry, "/subresources") {
        let verbs = array_at(subresource, "/verbs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        subresources.insert(string_at(subresource, "/subresource").to_owned(), verbs);
    }
    Version {
        name: version.to_owned(),
        status: subresources.contains_key("status"),
        schema: None,
        rules: None,
        declared: None,
        blank: typed.map_or_else(|| json!({}), encode::empty_object),
        typed,
        shape,
        columns: Vec::new(),
        subresources,
        scale: None,
        deprecation: DEPRECATED.iter().find(|(of, _)| *of == kind).map(|(_, warning)| (*warning).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_of_the_recorded_discovery_is_served_with_its_type() {
        assert!(built_in().len() > 60);
        for resource in built_in() {
            assert!(resource.versions.iter().all(|version| version.typed.is_some()), "{}", resource.qualified());
        }
    }
}
