//! RBAC: roles and bindings. The bootstrap rules of every real server are built in, without objects for them.

use serde_json::{Value, json};

use super::authorization_request::AuthorizationRequest;
use super::user::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::object::fields::{array_at, name, string_at};
use crate::storage::store::Store;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns the bootstrap rules, by the group that has them.
fn bootstrap() -> Vec<(&'static str, Value)> {
    let health_checks = json!({
        "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"],
    });
    let discovery = json!({
        "nonResourceURLs": [
            "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
            "/version", "/version/",
        ],
        "verbs": ["get"],
    });
    let issuer = json!({
        "nonResourceURLs": [
            "/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks",
            "/openid/v1/jwks/",
        ],
        "verbs": ["get"],
    });
    let reviews = json!({
        "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    });
    let themselves =
        json!({"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]});
    vec![
        (UNAUTHENTICATED, health_checks.clone()),
        (AUTHENTICATED, health_checks),
        (AUTHENTICATED, discovery),
        ("system:serviceaccounts", issuer),
        (AUTHENTICATED, reviews),
        (AUTHENTICATED, themselves),
    ]
}

/// Returns the reason for which a user may make a request; `None` if it may not.
pub(crate) fn find_permission(store: &Store, user: &User, request: &AuthorizationRequest) -> Option<String> {
    if user.is_master() {
        return Some(String::new());
    }
    let has = |group: &str| user.groups.iter().any(|own| own == group);
    if bootstrap().iter().any(|(group, rule)| has(group) && permits(rule, request)) {
        return Some(String::new());
    }
    matching_bindings(store, user, &request.namespace)
        .into_iter()
        .find(|(_, rules)| rules.iter().any(|rule| permits(rule, request)))
        .map(|(reason, _)| reason)
}

/// Returns every rule of a user in a namespace.
pub(crate) fn rules_for(store: &Store, user: &User, namespace: &str) -> Vec<Value> {
    let has = |group: &str| user.groups.iter().any(|own| own == group);
    let mut rules: Vec<Value> = bootstrap().into_iter().filter(|(group, _)| has(group)).map(|(_, rule)| rule).collect();
    rules.extend(matching_bindings(store, user, namespace).into_iter().flat_map(|(_, rules)| rules));
    rules
}

/// Returns the bindings of a user, each with its reason and its rules.
fn matching_bindings(store: &Store, user: &User, namespace: &str) -> Vec<(String, Vec<Value>)> {
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

fn role_rules(store: &Store, binding: &Value, namespace: Option<&str>) -> Vec<Value> {
    let role = string_at(binding, "/roleRef/name");
    let found = match string_at(binding, "/roleRef/kind") {
        "ClusterRole" => store.find(GROUP, "clusterroles", None, role),
        _ => store.find(GROUP, "roles", namespace, role),
    };
    match (found, role) {
        (Some(role), _) => array_at(role, "/rules").to_vec(),
        (None, "cluster-admin") => vec![
            json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
            json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
        ],
        (None, _) => Vec::new(),
    }
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
