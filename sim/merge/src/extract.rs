//! Extracts from an object what one manager has applied, as a declaration that can be applied again.

use serde_json::{Map, Value};

use crate::fieldset::{FieldSet, Node, PathElement};
use crate::managers::{self, ManagersError, Operation};
use crate::shape::{ListKey, Shape};

/// Returns the declaration of an applier: the fields that it owns, plus the fields that identify the object and the items
/// of its lists. `None` if it has applied nothing.
///
/// # Errors
/// If the object's `managedFields` are malformed.
pub fn extract(
    shape: &Shape,
    object: &Value,
    manager: &str,
    subresource: &str,
) -> Result<Option<Value>, ManagersError> {
    let managers = managers::read(object)?;
    let own = managers
        .into_iter()
        .find(|(key, _)| key.operation == Operation::Apply && key.name == manager && key.subresource == subresource);
    let Some((_, own)) = own else { return Ok(None) };
    let mut extracted = select(shape, object, &own.fields);
    if let Value::Object(fields) = &mut extracted {
        fields.extend(["apiVersion", "kind"].into_iter().filter_map(|name| copy_field(object, name)));
    }
    if let (Some(from), Some(metadata)) = (object.get("metadata"), managers::metadata_mut(&mut extracted)) {
        metadata.extend(["name", "namespace"].into_iter().filter_map(|name| copy_field(from, name)));
    }
    Ok(Some(extracted))
}

fn copy_field(from: &Value, name: &str) -> Option<(String, Value)> {
    Some((name.to_owned(), from.get(name)?.clone()))
}

/// Returns the parts of a value that are in a set of fields below it.
fn select(shape: &Shape, value: &Value, fields: &FieldSet) -> Value {
    match (value, shape) {
        (Value::Object(map), _) if shape.is_granular_map() => {
            let mut selected = Map::new();
            for (element, node) in &fields.nodes {
                let PathElement::Field(name) = element else { continue };
                if let Some(value) = map.get(name) {
                    selected.insert(name.clone(), select_owned(shape.field(name), value, node));
                }
            }
            Value::Object(selected)
        }
        (Value::Array(list), _) => match shape.items(list) {
            None => value.clone(),
            Some((items, item)) => {
                let owned = items.into_iter().filter_map(|(element, value)| Some((value, fields.nodes.get(&element)?)));
                Value::Array(
                    owned.map(|(value, node)| add_keys(shape, value, select_owned(item, value, node))).collect(),
                )
            }
        },
        _ => value.clone(),
    }
}

/// Returns what a node owns of a value: all of it if the value is atomic, else the parts below the node.
fn select_owned(shape: &Shape, value: &Value, node: &Node) -> Value {
    let is_granular = (value.is_object() && shape.is_granular_map()) || (value.is_array() && shape.is_associative());
    if is_granular { select(shape, value, &node.below) } else { value.clone() }
}

/// Adds to a selected item the fields that identify it, which another manager may own.
fn add_keys(list: &Shape, item: &Value, mut selected: Value) -> Value {
    if let (Shape::Keyed { keys, .. }, Value::Object(fields)) = (list, &mut selected) {
        for ListKey { name, .. } in keys {
            if let Some(value) = item.get(name) {
                fields.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
    selected
}
