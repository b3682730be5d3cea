//! The objects of a new API server, without the values that differ between two servers: UIDs, resourceVersions and times.

use serde_json::{Map, Value, json};

/// Paths of the recorded lists.
pub(crate) const LISTS: [&str; 9] = [
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];

/// Placeholder of every time.
const TIME: &str = "2000-01-01T00:00:00Z";
/// Fields with a time.
const TIMES: [&str; 3] = ["creationTimestamp", "lastTransitionTime", "time"];
/// Metadata that differs between two servers.
const VOLATILE: [&str; 2] = ["resourceVersion", "uid"];

/// Returns a list without the values that differ between two servers.
pub(crate) fn normalise_list(list: &Value) -> Value {
    let items: Vec<Value> = list["items"].as_array().into_iter().flatten().map(normalise_object).collect();
    json!({"apiVersion": list["apiVersion"], "kind": list["kind"], "items": items})
}

fn normalise_object(object: &Value) -> Value {
    let mut object = replace_times(object);
    let Some(metadata) = object["metadata"].as_object_mut() else { return object };
    for field in VOLATILE {
        metadata.remove(field);
    }
    if let Some(managers) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        let order = |manager: &Value| ["operation", "manager", "subresource"].map(|field| manager[field].to_string());
        managers.sort_by_key(order);
    }
    object
}

fn replace_times(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let replace = |(name, value): (&String, &Value)| {
                let is_time = TIMES.contains(&name.as_str()) && value.is_string();
                (name.clone(), if is_time { json!(TIME) } else { replace_times(value) })
            };
            Value::Object(fields.iter().map(replace).collect::<Map<String, Value>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(replace_times).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_server_are_replaced() {
        let managers =
            json!([{"manager": "b", "operation": "Update", "time": "now"}, {"manager": "a", "operation": "Apply"}]);
        let object = json!({
            "metadata": {"name": "one", "uid": "u", "resourceVersion": "7", "creationTimestamp": "now", "managedFields": managers},
            "value": 1,
        });
        let list =
            json!({"apiVersion": "v1", "kind": "ThingList", "metadata": {"resourceVersion": "9"}, "items": [object]});
        let expected = json!({"apiVersion": "v1", "kind": "ThingList", "items": [{
            "metadata": {"name": "one", "creationTimestamp": TIME, "managedFields": [
                {"manager": "a", "operation": "Apply"}, {"manager": "b", "operation": "Update", "time": TIME},
            ]},
            "value": 1,
        }]});
        assert_eq!(normalise_list(&list), expected);
    }
}
