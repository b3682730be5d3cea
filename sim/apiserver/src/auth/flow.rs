//! Classification of requests by FlowSchemas. Requests are not limited; responses name the FlowSchema and the priority level.

use serde_json::Value;

use super::authenticator::SERVICE_ACCOUNT_PREFIX;
use super::authorization_request::AuthorizationRequest;
use super::user::User;
use crate::object::fields::{array_at, string_at, uid, value_at};
use crate::storage::store::Store;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const ALL: &str = "*";

/// Headers of a response with their values.
pub(crate) type FlowHeaders = [(&'static str, String); 2];

/// Returns the headers that name the FlowSchema of a request and its priority level: of those that match, the schema with the
/// lowest precedence.
pub(crate) fn flow_headers(store: &Store, user: &User, request: &AuthorizationRequest) -> Option<FlowHeaders> {
    let mut chosen: Option<(i64, &Value)> = None;
    for entry in store.collection(GROUP, "flowschemas")?.values() {
        let schema = &***entry.object;
        let precedence = value_at(schema, "/spec/matchingPrecedence").and_then(Value::as_i64).unwrap_or_default();
        // Of several with the same precedence, the first by name is chosen. Matching is the expensive part.
        if chosen.is_none_or(|(lowest, _)| precedence < lowest) && matches(schema, user, request) {
            chosen = Some((precedence, schema));
        }
    }
    let (_, schema) = chosen?;
    let level = string_at(schema, "/spec/priorityLevelConfiguration/name");
    let level = store.find(GROUP, "prioritylevelconfigurations", None, level)?;
    Some([
        ("x-kubernetes-pf-flowschema-uid", uid(schema).to_owned()),
        ("x-kubernetes-pf-prioritylevel-uid", uid(level).to_owned()),
    ])
}

fn matches(schema: &Value, user: &User, request: &AuthorizationRequest) -> bool {
    array_at(schema, "/spec/rules").iter().any(|rule| {
        array_at(rule, "/subjects").iter().any(|subject| matches_subject(subject, user))
            && match &request.path {
                Some(path) => {
                    array_at(rule, "/nonResourceRules").iter().any(|rule| matches_path(rule, &request.verb, path))
                }
                None => array_at(rule, "/resourceRules").iter().any(|rule| matches_resource(rule, request)),
            }
    })
}

fn matches_subject(subject: &Value, user: &User) -> bool {
    match string_at(subject, "/kind") {
        "User" => is_or_all(string_at(subject, "/user/name"), &user.name),
        "Group" => user.groups.iter().any(|group| is_or_all(string_at(subject, "/group/name"), group)),
        "ServiceAccount" => {
            let account = user.name.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':'));
            account.is_some_and(|(namespace, name)| {
                string_at(subject, "/serviceAccount/namespace") == namespace
                    && is_or_all(string_at(subject, "/serviceAccount/name"), name)
            })
        }
        _ => false,
    }
}

fn is_or_all(wanted: &str, found: &str) -> bool {
    wanted == ALL || wanted == found
}

fn contains(rule: &Value, field: &str, found: &str) -> bool {
    array_at(rule, field).iter().filter_map(Value::as_str).any(|wanted| is_or_all(wanted, found))
}

fn matches_resource(rule: &Value, request: &AuthorizationRequest) -> bool {
    let resource = match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    };
    let is_in_scope = match request.namespace.as_str() {
        "" => value_at(rule, "/clusterScope") == Some(&Value::Bool(true)),
        namespace => contains(rule, "/namespaces", namespace),
    };
    is_in_scope
        && contains(rule, "/verbs", &request.verb)
        && contains(rule, "/apiGroups", &request.group)
        && contains(rule, "/resources", &resource)
}

fn matches_path(rule: &Value, verb: &str, path: &str) -> bool {
    let matches_url = |url: &str| match url.strip_suffix("/*") {
        Some(parent) => path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/')),
        None => is_or_all(url, path),
    };
    contains(rule, "/verbs", verb)
        && array_at(rule, "/nonResourceURLs").iter().filter_map(Value::as_str).any(matches_url)
}
