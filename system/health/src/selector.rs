//! Which pods explain an object: the query that finds them.

use serde_json::{Map, Value};

use crate::object::Object;

/// The pods that an object stands or falls with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSelector {
    /// Where they are.
    pub namespace: String,
    /// Their labels, as the API's parameter `labelSelector` takes them; not yet escaped for a URL. Never empty.
    pub labels: String,
}

/// Which pods explain an object; `None` for kinds without pods, and where nothing is selected.
pub fn pod_selector(object: &Value) -> Option<PodSelector> {
    let object = Object(object);
    let labels = match (object.group(), object.kind()) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => selector(object)?,
        // It has labels only, without the level of `matchLabels`.
        ("", "ReplicationController") => equal(object.at(&["spec", "selector"])?.as_object()?)?,
        (_, _) => return None,
    };
    let namespace = object.namespace()?.to_owned();
    // An empty selector would mean every pod of the namespace.
    (!labels.is_empty()).then(|| PodSelector { namespace, labels: labels.join(",") })
}

/// `None` where a part cannot be read: less would select more.
fn selector(object: Object<'_>) -> Option<Vec<String>> {
    let mut parts = match object.at(&["spec", "selector", "matchLabels"]) {
        Some(labels) => equal(labels.as_object()?)?,
        None => Vec::new(),
    };
    for expression in object.list(&["spec", "selector", "matchExpressions"]) {
        parts.push(requirement(Object(expression))?);
    }
    Some(parts)
}

/// Sorted, whatever the order of the map.
fn equal(labels: &Map<String, Value>) -> Option<Vec<String>> {
    let mut parts: Vec<String> = labels
        .iter()
        .map(|(name, value)| Some(format!("{}={}", plain(name)?, plain(value.as_str()?)?)))
        .collect::<Option<_>>()?;
    parts.sort();
    Some(parts)
}

fn requirement(expression: Object<'_>) -> Option<String> {
    let key = plain(expression.text(&["key"])?)?;
    let values: Vec<&str> =
        expression.list(&["values"]).iter().map(|value| plain(value.as_str()?)).collect::<Option<_>>()?;
    let values = values.join(",");
    match expression.text(&["operator"])? {
        "In" => Some(format!("{key} in ({values})")),
        "NotIn" => Some(format!("{key} notin ({values})")),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

/// A label's name or value as the API allows them; anything else would change the meaning of the query.
fn plain(text: &str) -> Option<&str> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    text.chars().all(is_plain).then_some(text)
}
