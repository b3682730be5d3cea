//! Patches of every type, made from whole objects.

use serde_json::{Value, json};

use super::dice::Dice;

/// The fields by which elements of lists are known.
const KEYS: [&str; 3] = ["name", "port", "id"];

/// Takes some of the fields away, everywhere.
pub(super) fn thin(dice: &mut Dice, value: &mut Value) {
    thin_in(dice, value, false);
}

/// The elements of lists keep what they are known by.
fn thin_in(dice: &mut Dice, value: &mut Value, is_element: bool) {
    match value {
        Value::Object(map) => {
            let names: Vec<String> = map.keys().cloned().collect();
            for name in names {
                let fixed = matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "name" | "id" | "port")
                    || is_element && matches!(name.as_str(), "type" | "containerPort" | "mountPath");
                if !fixed && dice.percent(25) {
                    map.remove(&name);
                } else if matches!(name.as_str(), "metadata" | "volumeClaimTemplates") {
                    // Maps in metadata that are there and empty are another topic, and so are half of the claims.
                } else if let Some(field) = map.get_mut(&name) {
                    thin_in(dice, field, false);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| thin_in(dice, item, true)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_identity(object: &mut Value) {
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

/// Null in some places.
fn pierce(dice: &mut Dice, value: &mut Value, of_hundred: u32) {
    let Value::Object(map) = value else { return };
    for field in map.values_mut() {
        if dice.percent(of_hundred) {
            *field = Value::Null;
        } else {
            pierce(dice, field, of_hundred);
        }
    }
}

/// A merge patch.
pub(super) fn merge(dice: &mut Dice, mut object: Value) -> Value {
    without_identity(&mut object);
    thin(dice, &mut object);
    pierce(dice, &mut object, 8);
    object
}

/// A strategic merge patch, with directives where lists have keys.
pub(super) fn strategic(dice: &mut Dice, mut object: Value) -> Value {
    without_identity(&mut object);
    thin(dice, &mut object);
    pierce(dice, &mut object, 5);
    direct(dice, &mut object);
    object
}

/// Directives where they mean something: in maps, and in elements of lists that are known by a key.
fn direct(dice: &mut Dice, value: &mut Value) {
    match value {
        Value::Object(map) => {
            if dice.percent(2) {
                map.insert("$patch".to_owned(), json!("replace"));
            } else {
                map.values_mut().for_each(|field| direct(dice, field));
            }
        }
        Value::Array(list) => {
            for item in list.iter_mut() {
                let key = KEYS.iter().find_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
                match key {
                    Some((key, id)) if dice.percent(15) => *item = json!({key: id, "$patch": "delete"}),
                    Some(_) => direct(dice, item),
                    None => {}
                }
            }
            if list.iter().all(Value::is_object) && !list.is_empty() && dice.percent(3) {
                list.push(json!({"$patch": "replace"}));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A JSON patch about places that an object of this kind may have.
pub(super) fn json(dice: &mut Dice, object: &Value) -> Value {
    let mut places = Vec::new();
    collect(object, "", &mut places);
    places.retain(|(place, _)| !matches!(place.as_str(), "/apiVersion" | "/kind" | "/metadata/name" | "/metadata"));
    places.push(("/metadata/labels".to_owned(), json!({"app": "a"})));
    let mut operations: Vec<Value> = Vec::new();
    for _ in 0..dice.between(1, 2) {
        let (place, value) = dice.one(&places).clone();
        let (other, _) = dice.one(&places).clone();
        operations.push(
            match dice.weighed(&[(40, "add"), (20, "replace"), (25, "remove"), (9, "test"), (3, "copy"), (3, "move")]) {
                "remove" => json!({"op": "remove", "path": place}),
                operation @ ("copy" | "move") => json!({"op": operation, "from": place, "path": other}),
                operation => json!({"op": operation, "path": place, "value": value}),
            },
        );
    }
    operations.into()
}

fn collect(value: &Value, place: &str, places: &mut Vec<(String, Value)>) {
    if !place.is_empty() {
        places.push((place.to_owned(), value.clone()));
    }
    match value {
        Value::Object(map) => {
            for (name, field) in map {
                collect(field, &format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                collect(item, &format!("{place}/{index}"), places);
            }
            if let Some(last) = list.last() {
                places.push((format!("{place}/-"), last.clone()));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
