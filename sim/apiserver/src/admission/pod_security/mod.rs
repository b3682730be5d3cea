//! Pod Security: the level that a namespace enforces for its pods, and the one about which it warns.

mod baseline;
mod restricted;
mod subjects;

use serde_json::Value;

use crate::object::fields::{array_at, string_at, value_at};
use crate::registry::resource::Resource;
use crate::storage::store::Store;

/// Kinds with a pod template, by the JSON pointer to it.
const TEMPLATES: [(&str, &str, &str); 8] = [
    ("apps", "daemonsets", "/spec/template"),
    ("apps", "deployments", "/spec/template"),
    ("apps", "replicasets", "/spec/template"),
    ("apps", "statefulsets", "/spec/template"),
    ("batch", "cronjobs", "/spec/jobTemplate/spec/template"),
    ("batch", "jobs", "/spec/template"),
    ("", "podtemplates", "/template"),
    ("", "replicationcontrollers", "/spec/template"),
];

/// Returns the reason for which the namespace of a new pod forbids it.
pub(crate) fn enforce_level(
    store: &Store,
    resource: &Resource,
    namespace: Option<&str>,
    pod: &Value,
) -> Option<String> {
    if !resource.is("", "pods") {
        return None;
    }
    let violations = violations(store, namespace, "enforce", pod)?;
    Some(format!("violates PodSecurity {violations}"))
}

/// Returns the warning about a pod or a pod template that violates the level about which the namespace warns.
pub(crate) fn level_warning(
    store: &Store,
    resource: &Resource,
    namespace: Option<&str>,
    object: &Value,
) -> Option<String> {
    let template = TEMPLATES.iter().find(|(group, plural, _)| resource.is(group, plural));
    let pod = match template {
        Some((.., pointer)) => value_at(object, pointer)?,
        None if resource.is("", "pods") => object,
        None => return None,
    };
    let violations = violations(store, namespace, "warn", pod)?;
    Some(format!("would violate PodSecurity {violations}"))
}

/// Lists of containers of a pod.
const CONTAINER_LISTS: [&str; 3] = ["/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"];

/// True if an update of a pod, or of one of its subresources, must be evaluated again: other changes cannot violate a level.
pub(crate) fn is_significant_update(live: &Value, pod: &Value) -> bool {
    CONTAINER_LISTS.iter().any(|list| {
        let (before, after) = (array_at(live, list), array_at(pod, list));
        let image = |container: &Value| (container["name"].clone(), container["image"].clone());
        before.len() != after.len() || after.iter().any(|new| !before.iter().any(|old| image(old) == image(new)))
    })
}

/// Returns the level with its version and the violations of it.
fn violations(store: &Store, namespace: Option<&str>, mode: &str, pod: &Value) -> Option<String> {
    let namespace = store.find("", "namespaces", None, namespace?)?;
    let label = |name: &str| string_at(namespace, &format!("/metadata/labels/pod-security.kubernetes.io~1{name}"));
    // A namespace that says nothing about warnings has those of the level that it enforces.
    let label = |suffix: &str| match label(&format!("{mode}{suffix}")) {
        "" => label(&format!("enforce{suffix}")),
        own => own,
    };
    let level = label("");
    let violations = match level {
        "baseline" => baseline::violations(pod, true),
        "restricted" => [baseline::violations(pod, false), restricted::violations(pod)].concat(),
        _ => return None,
    };
    let version = match label("-version") {
        "" => "latest",
        version => version,
    };
    let level = format!("{level}:{version}");
    (!violations.is_empty()).then(|| format!("{level:?}: {}", violations.join(", ")))
}
