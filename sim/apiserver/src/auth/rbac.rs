//! RBAC: roles and bindings.

use serde_json::Value;

use super::authorization_request::AuthorizationRequest;
use super::user::User;
use crate::object::fields::{array_at, name, string_at};
use crate::storage::store::Store;

/// API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns the reason for which a user may make a request; `None` if it may not.
pub(crate) fn find_permission(store: &Store, user: &User, request: &AuthorizationRequest) -> Option<String> {
    if user.is_master() {
        return Some(String::new());
    }
    matching_bindings(store, user, &request.namespace)
        .into_iter()
        .find(|(_, rules)| rules.iter().any(|rule| permits(rule, request)))
        .map(|(reason, _)| reason)
}

/// Returns every rule of a user in a namespace.
pub(crate) fn rules_for(store: &Store, user: &User, namespace: &str) -> Vec<Value> {
    matching_bindings(store, user, namespace).into_iter().flat_map(|(_, rules)| rules.iter().cloned()).collect()
}

/// Returns the bindings of a user, each with its reason and its rules.
fn matching_bindings<'a>(store: &'a Store, user: &User, namespace: &str) -> Vec<(String, &'a [Value])> {
    let mut found = Vec::new();
    for plural in ["clusterrolebindings", "rolebindings"] {
        for entry in store.collection(GROUP, plural).into_iter().flat_map(|collection| collection.values()) {
            let place = entry.key.namespace.as_deref();
            if place.is_some_and(|place| place != namespace) {
                continue;
            }
            let subjects = array_at(&entry.object, "/subjects");
            let Some(subject) = subjects.iter().find(|subject| is_subject(subject, user, place)) else { continue };
            let rules = role_rules(store, &entry.object, place);
            found.push((reason(&entry.object, subject, place), rules));
        }
    }
    found
}

fn role_rules<'a>(store: &'a Store, binding: &Value, namespace: Option<&str>) -> &'a [Value] {
    let role = string_at(binding, "/roleRef/name");
    let found = match string_at(binding, "/roleRef/kind") {
        "ClusterRole" => store.find(GROUP, "clusterroles", None, role),
        _ => store.find(GROUP, "roles", namespace, role),
    };
    found.map_or(&[], |role| array_at(role, "/rules"))
}

fn reason(binding: &Value, subject: &Value, namespace: Option<&str>) -> String {
    let (own, role) = (name(binding), string_at(binding, "/roleRef/name"));
    let kind = string_at(binding, "/roleRef/kind");
    let (subject_kind, subject_name) = (string_at(subject, "/kind"), string_at(subject, "/name"));
    let subject_place = match string_at(subject, "/namespace") {
        "" => namespace.unwrap_or_default(),
        place => place,
    };
    let whom = if subject_kind == "ServiceAccount" {
        format!("{subject_kind} \"{subject_name}/{subject_place}\"")
    } else {
        format!("{subject_kind} {subject_name:?}")
    };
    match namespace {
        Some(place) => format!("RBAC: allowed by RoleBinding \"{own}/{place}\" of {kind} {role:?} to {whom}"),
        None => format!("RBAC: allowed by ClusterRoleBinding {own:?} of {kind} {role:?} to {whom}"),
    }
}

fn is_subject(subject: &Value, user: &User, namespace: Option<&str>) -> bool {
    let named = string_at(subject, "/name");
    match string_at(subject, "/kind") {
        "User" => user.name == named,
        "Group" => user.groups.iter().any(|group| group == named),
        "ServiceAccount" => {
            let place = match string_at(subject, "/namespace") {
                "" => namespace.unwrap_or_default(),
                place => place,
            };
            user.name == format!("system:serviceaccount:{place}:{named}")
        }
        _ => false,
    }
}

/// True if a rule permits a request.
fn permits(rule: &Value, request: &AuthorizationRequest) -> bool {
    let has = |field: &str, wanted: &str| {
        array_at(rule, field).iter().filter_map(Value::as_str).any(|value| value == "*" || value == wanted)
    };
    if !has("/verbs", &request.verb) {
        return false;
    }
    if let Some(path) = &request.path {
        return array_at(rule, "/nonResourceURLs")
            .iter()
            .filter_map(Value::as_str)
            .any(|pattern| pattern == path || pattern.strip_suffix('*').is_some_and(|start| path.starts_with(start)));
    }
    let any_parent = format!("*/{}", request.subresource);
    let resource = has("/resources", &request.full_resource())
        || !request.subresource.is_empty()
            && array_at(rule, "/resources").iter().any(|value| *value == any_parent.as_str());
    let names = array_at(rule, "/resourceNames");
    has("/apiGroups", &request.group)
        && resource
        && (names.is_empty() || names.iter().any(|name| *name == request.name.as_str()))
}
