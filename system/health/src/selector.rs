//! Label selectors of the pods that explain the health of an object.

use serde_json::{Map, Value};

use crate::object::Object;

/// Query for the pods of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSelector {
    /// Namespace of the pods.
    pub namespace: String,
    /// Value of the parameter `labelSelector`, not percent-encoded. Never empty.
    pub labels: String,
}

/// Returns the selector of an object's pods; `None` for kinds without pods and for an empty selector.
pub fn pod_selector(object: &Value) -> Option<PodSelector> {
    let object = Object(object);
    let labels = match (object.group(), object.kind()) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
            read_selector(object)?
        }
        // Its selector is a plain map of labels, without `matchLabels`.
        ("", "ReplicationController") => format_label_requirements(object.at(&["spec", "selector"])?.as_object()?)?,
        (_, _) => return None,
    };
    let namespace = object.namespace()?.to_owned();
    // An empty selector would select every pod of the namespace.
    (!labels.is_empty()).then(|| PodSelector { namespace, labels: labels.join(",") })
}

/// Returns the parts of a selector; `None` if one is invalid: without it, the selector would match more pods.
fn read_selector(object: Object<'_>) -> Option<Vec<String>> {
    let mut parts = match object.at(&["spec", "selector", "matchLabels"]) {
        Some(labels) => format_label_requirements(labels.as_object()?)?,
        None => Vec::new(),
    };
    for expression in object.list(&["spec", "selector", "matchExpressions"]) {
        parts.push(format_requirement(Object(expression))?);
    }
    Some(parts)
}

/// Returns the requirements for equal labels, sorted.
fn format_label_requirements(labels: &Map<String, Value>) -> Option<Vec<String>> {
    let mut parts: Vec<String> = labels
        .iter()
        .map(|(name, value)| Some(format!("{}={}", check_label(name)?, check_label(value.as_str()?)?)))
        .collect::<Option<_>>()?;
    parts.sort();
    Some(parts)
}

fn format_requirement(expression: Object<'_>) -> Option<String> {
    let key = check_label(expression.text(&["key"])?)?;
    let values: Vec<&str> =
        expression.list(&["values"]).iter().map(|value| check_label(value.as_str()?)).collect::<Option<_>>()?;
    let values = values.join(",");
    match expression.text(&["operator"])? {
        "In" => Some(format!("{key} in ({values})")),
        "NotIn" => Some(format!("{key} notin ({values})")),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

/// Returns the text if it is valid as a label name or value; other characters would change the meaning of the query.
fn check_label(text: &str) -> Option<&str> {
    let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    text.chars().all(is_valid).then_some(text)
}
