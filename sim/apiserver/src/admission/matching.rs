//! Match constraints of admission policies and webhooks.

use serde_json::Value;

use crate::object::fields::array_at;
use crate::registry::resource::Resource;
use crate::storage::store::Store;

pub(super) fn matches_rules(
    store: &Store,
    policy: &Value,
    resource: &Resource,
    namespace: Option<&str>,
    operation: &str,
) -> bool {
    let has = |rule: &Value, field: &str, wanted: &str| {
        array_at(rule, field).iter().filter_map(Value::as_str).any(|value| value == "*" || value == wanted)
    };
    let matches = array_at(policy, "/spec/matchConstraints/resourceRules").iter().any(|rule| {
        has(rule, "/apiGroups", &resource.group)
            && has(rule, "/resources", &resource.plural)
            && has(rule, "/operations", operation)
    });
    let wanted = policy.pointer("/spec/matchConstraints/namespaceSelector/matchLabels").and_then(Value::as_object);
    let labels = namespace
        .and_then(|namespace| store.find("", "namespaces", None, namespace))
        .and_then(|namespace| namespace.pointer("/metadata/labels"));
    let fits = wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| namespace.is_none() || labels.and_then(|labels| labels.get(key)) == Some(value));
    matches && fits
}
