//! Detects fields that the cluster did not keep as applied, because an admission webhook replaces them at every apply.
//!
//! Compares the applied object with the response, and only fields that both have. Servers omit empty values, add defaults
//! and normalise quantities and times; none of that counts as a rewrite, so that there are no false reports.

use jiff::Timestamp;
use serde_json::Value;
use sindri_cel::Quantity;

/// Returns the path of the first field with another value than was applied: `spec.template.spec.containers[web].image`.
pub fn find_rewritten_field(applied: &Value, live: &Value) -> Option<String> {
    let steps = find_path(applied, live)?;
    let path = steps.into_iter().rev().collect::<String>();
    Some(path.strip_prefix('.').unwrap_or(&path).to_owned())
}

/// Returns the steps of the path, last one first, so that nothing is allocated in the usual case that no field was rewritten.
fn find_path(applied: &Value, live: &Value) -> Option<Vec<String>> {
    match (applied, live) {
        (Value::Object(applied), Value::Object(live)) => applied.iter().find_map(|(field, value)| {
            let mut path = find_path(value, live.get(field)?)?;
            path.push(format!(".{field}"));
            Some(path)
        }),
        (Value::Array(applied), Value::Array(live)) => applied.iter().find_map(|element| {
            // Elements without a name are not compared, because the server may reorder them.
            let name = element["name"].as_str()?;
            let mut path = find_path(element, live.iter().find(|live| live["name"] == *name)?)?;
            path.push(format!("[{name}]"));
            Some(path)
        }),
        (Value::String(applied), Value::String(live)) if !is_same_text(applied, live) => Some(Vec::new()),
        (Value::Bool(applied), Value::Bool(live)) if applied != live => Some(Vec::new()),
        (Value::Number(applied), Value::Number(live)) if applied.as_f64() != live.as_f64() => Some(Vec::new()),
        _ => None,
    }
}

/// Returns true if two strings have the same meaning. An empty applied string means that no value is requested.
fn is_same_text(applied: &str, live: &str) -> bool {
    let times = || applied.parse::<Timestamp>().ok().zip(live.parse().ok());
    let quantities = || Quantity::parse(applied).zip(Quantity::parse(live));
    applied.is_empty()
        || applied == live
        || times().is_some_and(|(applied, live)| applied == live)
        || quantities().is_some_and(|(applied, live)| applied == live)
        // Base64 is stored without its line breaks.
        || applied.split_whitespace().collect::<String>() == *live
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::find_rewritten_field;

    #[test]
    fn a_rewritten_value_is_reported_with_its_path() {
        let applied = json!({"data": {"a": "1", "b": "2"}, "spec": {"on": true, "replicas": 2}});
        let with = |pointer: &str, value: serde_json::Value| {
            let mut live = applied.clone();
            *live.pointer_mut(pointer).unwrap() = value;
            find_rewritten_field(&applied, &live)
        };
        assert_eq!(find_rewritten_field(&applied, &applied), None);
        assert_eq!(with("/data/b", json!("3")).as_deref(), Some("data.b"));
        assert_eq!(with("/spec/on", json!(false)).as_deref(), Some("spec.on"));
        assert_eq!(with("/spec/replicas", json!(3)).as_deref(), Some("spec.replicas"));
        let image = |image: &str| json!({"containers": [{"name": "other"}, {"name": "web", "image": image}]});
        assert_eq!(
            find_rewritten_field(&image("web:1"), &image("mirror/web:1")).as_deref(),
            Some("containers[web].image")
        );
    }

    #[test]
    fn normalised_values_are_not_rewrites() {
        for (applied, live) in [
            (json!({"a": "x"}), json!({})),
            (json!({"a": null}), json!({"a": "x"})),
            (json!({"clusterIP": ""}), json!({"clusterIP": "10.0.0.1"})),
            (json!({"cpu": "1000m"}), json!({"cpu": "1"})),
            (json!({"cpu": "0.5"}), json!({"cpu": "500m"})),
            (json!({"memory": "1024Mi"}), json!({"memory": "1Gi"})),
            (json!({"at": "2026-01-01T00:00:00.000Z"}), json!({"at": "2026-01-01T00:00:00Z"})),
            (json!({"data": "YWJj\nZGVm\n"}), json!({"data": "YWJjZGVm"})),
            (json!({"port": 80}), json!({"port": "80"})),
            (json!({"replicas": 2}), json!({"replicas": 2.0})),
            (json!({"args": ["b", "a"]}), json!({"args": ["a", "b"]})),
        ] {
            assert_eq!(find_rewritten_field(&applied, &live), None, "{applied}");
        }
    }
}
