//! Generates patches of every type from complete objects.

use serde_json::{Value, json};

use super::random::RandomSource;

/// Keys of list elements.
const KEYS: [&str; 3] = ["name", "port", "id"];

/// Removes random fields at all levels.
pub(super) fn remove_some_fields(random: &mut RandomSource, value: &mut Value) {
    remove_some_below(random, value, false);
}

/// Elements of lists keep their keys.
fn remove_some_below(random: &mut RandomSource, value: &mut Value, is_element: bool) {
    match value {
        Value::Object(map) => {
            let names: Vec<String> = map.keys().cloned().collect();
            for name in names {
                let fixed = matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "name" | "id" | "port")
                    || is_element && matches!(name.as_str(), "type" | "containerPort" | "mountPath");
                if !fixed && random.percent(25) {
                    map.remove(&name);
                } else if matches!(name.as_str(), "metadata" | "volumeClaimTemplates") {
                    // Not changed: empty maps in metadata and incomplete claims are not generated on purpose.
                } else if let Some(field) = map.get_mut(&name) {
                    remove_some_below(random, field, false);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| remove_some_below(random, item, true)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove_identity(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.remove("namespace");
        if metadata.is_empty() {
            object.as_object_mut().map(|map| map.remove("metadata"));
        }
    }
}

/// Sets random fields to null.
fn nullify_some(random: &mut RandomSource, value: &mut Value, percentage: u32) {
    let Value::Object(map) = value else { return };
    for field in map.values_mut() {
        if random.percent(percentage) {
            *field = Value::Null;
        } else {
            nullify_some(random, field, percentage);
        }
    }
}

/// Returns a merge patch.
pub(super) fn merge(random: &mut RandomSource, mut object: Value) -> Value {
    remove_identity(&mut object);
    remove_some_fields(random, &mut object);
    nullify_some(random, &mut object, 8);
    object
}

/// Returns a strategic merge patch, with directives in lists with keys.
pub(super) fn strategic(random: &mut RandomSource, mut object: Value) -> Value {
    remove_identity(&mut object);
    remove_some_fields(random, &mut object);
    nullify_some(random, &mut object, 5);
    add_directives(random, &mut object);
    object
}

/// Adds directives where they have an effect: in maps, and in elements of lists with keys.
fn add_directives(random: &mut RandomSource, value: &mut Value) {
    match value {
        Value::Object(map) => {
            if random.percent(2) {
                map.insert("$patch".to_owned(), json!("replace"));
            } else {
                map.values_mut().for_each(|field| add_directives(random, field));
            }
        }
        Value::Array(list) => {
            for item in list.iter_mut() {
                let key = KEYS.iter().find_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
                match key {
                    Some((key, id)) if random.percent(15) => *item = json!({key: id, "$patch": "delete"}),
                    Some(_) => add_directives(random, item),
                    None => {}
                }
            }
            if list.iter().all(Value::is_object) && !list.is_empty() && random.percent(3) {
                list.push(json!({"$patch": "replace"}));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a JSON patch of fields that an object of this kind may have.
pub(super) fn json(random: &mut RandomSource, object: &Value) -> Value {
    let mut fields = Vec::new();
    collect(object, "", &mut fields);
    fields.retain(|(pointer, _)| !matches!(pointer.as_str(), "/apiVersion" | "/kind" | "/metadata/name" | "/metadata"));
    fields.push(("/metadata/labels".to_owned(), json!({"app": "a"})));
    let mut operations: Vec<Value> = Vec::new();
    for _ in 0..random.between(1, 2) {
        let (pointer, value) = random.one(&fields).clone();
        let (other, _) = random.one(&fields).clone();
        operations.push(
            match random.weighted(&[
                (40, "add"),
                (20, "replace"),
                (25, "remove"),
                (9, "test"),
                (3, "copy"),
                (3, "move"),
            ]) {
                "remove" => json!({"op": "remove", "path": pointer}),
                operation @ ("copy" | "move") => json!({"op": operation, "from": pointer, "path": other}),
                operation => json!({"op": operation, "path": pointer, "value": value}),
            },
        );
    }
    operations.into()
}

fn collect(value: &Value, pointer: &str, fields: &mut Vec<(String, Value)>) {
    if !pointer.is_empty() {
        fields.push((pointer.to_owned(), value.clone()));
    }
    match value {
        Value::Object(map) => {
            for (name, field) in map {
                collect(field, &format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")), fields);
            }
        }
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                collect(item, &format!("{pointer}/{index}"), fields);
            }
            if let Some(last) = list.last() {
                fields.push((format!("{pointer}/-"), last.clone()));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
