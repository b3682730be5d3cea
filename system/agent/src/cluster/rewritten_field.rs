//! Whether the cluster keeps what was applied: an admission webhook may put something else in its place, at every apply.
//!
//! Told by the answer to an apply, and only where both have a value. Servers leave out what is empty, fill in what is
//! missing and write quantities and times in their own way: none of that counts, so that what is found is meant.

use jiff::Timestamp;
use serde_json::Value;
use sindri_cel::Quantity;

/// The first place where an object has another value than was just applied to it: `spec.template.spec.containers[web].image`.
pub fn rewritten(applied: &Value, live: &Value) -> Option<String> {
    let steps = first(applied, live)?;
    let path = steps.into_iter().rev().collect::<String>();
    Some(path.strip_prefix('.').unwrap_or(&path).to_owned())
}

/// The steps to that place, the last one first: there is hardly ever one, and then nothing is written down on the way.
fn first(applied: &Value, live: &Value) -> Option<Vec<String>> {
    match (applied, live) {
        (Value::Object(applied), Value::Object(live)) => applied.iter().find_map(|(field, value)| {
            let mut path = first(value, live.get(field)?)?;
            path.push(format!(".{field}"));
            Some(path)
        }),
        (Value::Array(applied), Value::Array(live)) => applied.iter().find_map(|element| {
            // What has no name cannot be found again: the order may be the server's.
            let name = element["name"].as_str()?;
            let mut path = first(element, live.iter().find(|live| live["name"] == *name)?)?;
            path.push(format!("[{name}]"));
            Some(path)
        }),
        (Value::String(applied), Value::String(live)) if !is_same(applied, live) => Some(Vec::new()),
        (Value::Bool(applied), Value::Bool(live)) if applied != live => Some(Vec::new()),
        (Value::Number(applied), Value::Number(live)) if applied.as_f64() != live.as_f64() => Some(Vec::new()),
        _ => None,
    }
}

/// Whether two texts mean the same; an empty one asks for nothing.
fn is_same(applied: &str, live: &str) -> bool {
    let times = || applied.parse::<Timestamp>().ok().zip(live.parse().ok());
    let quantities = || Quantity::parse(applied).zip(Quantity::parse(live));
    applied.is_empty()
        || applied == live
        || times().is_some_and(|(applied, live)| applied == live)
        || quantities().is_some_and(|(applied, live)| applied == live)
        // Base64 is stored without what breaks its lines.
        || applied.split_whitespace().collect::<String>() == *live
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::rewritten;

    #[test]
    fn another_value_is_found_with_its_place() {
        let applied = json!({"data": {"a": "1", "b": "2"}, "spec": {"on": true, "replicas": 2}});
        let with = |pointer: &str, value: serde_json::Value| {
            let mut live = applied.clone();
            *live.pointer_mut(pointer).unwrap() = value;
            rewritten(&applied, &live)
        };
        assert_eq!(rewritten(&applied, &applied), None);
        assert_eq!(with("/data/b", json!("3")).as_deref(), Some("data.b"));
        assert_eq!(with("/spec/on", json!(false)).as_deref(), Some("spec.on"));
        assert_eq!(with("/spec/replicas", json!(3)).as_deref(), Some("spec.replicas"));
        let image = |image: &str| json!({"containers": [{"name": "other"}, {"name": "web", "image": image}]});
        assert_eq!(rewritten(&image("web:1"), &image("mirror/web:1")).as_deref(), Some("containers[web].image"));
    }

    #[test]
    fn what_a_server_only_writes_in_its_own_way_does_not_count() {
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
            assert_eq!(rewritten(&applied, &live), None, "{applied}");
        }
    }
}
