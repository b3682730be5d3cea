//! Rules and selectors of admission policies and webhooks.

use serde_json::Value;

use super::attributes::{Attributes, Objects, Operation};
use crate::object::fields::{array_at, string_at, value_at};
use crate::object::label_selectors::matches_selector;
use crate::registry::conversion::storage_group;
use crate::registry::resource::Target;
use crate::registry::served::Registry;

/// Returns the resource in the version that the first matching rule names: that of the request, or, if `is_equivalent`,
/// another version of the same resource.
pub(super) fn find_matching_target(
    attributes: &Attributes<'_>,
    rules: &[Value],
    is_equivalent: bool,
) -> Option<Target> {
    if rules.iter().any(|rule| matches_rule(attributes, rule, attributes.target)) {
        return Some(attributes.target.clone());
    }
    if !is_equivalent {
        return None;
    }
    let others = equivalent_targets(attributes.registry, attributes.target);
    rules.iter().find_map(|rule| others.iter().find(|target| matches_rule(attributes, rule, target)).cloned())
}

/// Returns the same resource in its other versions and groups.
fn equivalent_targets(registry: &Registry, target: &Target) -> Vec<Target> {
    let (resource, group) = (&target.resource, storage_group(&target.resource));
    let same = registry.all().filter(|other| other.plural == resource.plural && storage_group(other) == group);
    let all = same.flat_map(|resource| {
        resource.versions.iter().map(|version| Target { resource: resource.clone(), version: version.clone() })
    });
    all.filter(|other| other.api_version() != target.api_version()).collect()
}

fn matches_rule(attributes: &Attributes<'_>, rule: &Value, target: &Target) -> bool {
    let has = |field: &str, requested: &str| {
        array_at(rule, field).iter().filter_map(Value::as_str).any(|value| value == "*" || value == requested)
    };
    let is_cluster_scoped = attributes.namespace.is_empty() || target.resource.is_namespace();
    let is_in_scope = match string_at(rule, "/scope") {
        "Cluster" => is_cluster_scoped,
        "Namespaced" => !is_cluster_scoped,
        _ => true,
    };
    let matches_resource = array_at(rule, "/resources").iter().filter_map(Value::as_str).any(|resource| {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        (plural == "*" || plural == target.resource.plural)
            && (subresource == "*" || subresource == attributes.subresource)
    });
    let names = array_at(rule, "/resourceNames");
    is_in_scope
        && matches_resource
        && has("/operations", attributes.operation.name())
        && has("/apiGroups", &target.resource.group)
        && has("/apiVersions", &target.version.name)
        && (names.is_empty() || names.iter().any(|name| name == attributes.name))
}

/// True if the selectors for namespaces and objects of a policy or webhook select a write.
pub(super) fn matches_selectors(attributes: &Attributes<'_>, constraints: &Value, objects: Objects<'_>) -> bool {
    let namespaces = constraints.get("namespaceSelector");
    let selected = constraints.get("objectSelector");
    (selects_everything(namespaces) || matches_namespace(attributes, namespaces, objects))
        && (selects_everything(selected)
            || [objects.new, objects.old].into_iter().flatten().any(|object| matches_selector(selected, object)))
}

/// True for a selector without requirements.
fn selects_everything(selector: Option<&Value>) -> bool {
    let is_empty = |selector: &Value| {
        array_at(selector, "/matchExpressions").is_empty()
            && value_at(selector, "/matchLabels").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
    };
    selector.is_none_or(is_empty)
}

/// True if a selector selects the namespace of a write. Cluster-scoped objects are never excluded; a Namespace that is written
/// counts with its new labels.
fn matches_namespace(attributes: &Attributes<'_>, selector: Option<&Value>, objects: Objects<'_>) -> bool {
    let is_namespace = attributes.target.resource.is_namespace();
    if attributes.namespace.is_empty() && !is_namespace {
        return true;
    }
    if is_namespace && attributes.subresource.is_empty() && attributes.operation != Operation::Delete {
        return objects.new.is_some_and(|namespace| matches_selector(selector, namespace));
    }
    let namespace = attributes.store.find("", "namespaces", None, attributes.namespace);
    namespace.is_some_and(|namespace| matches_selector(selector, namespace))
}
