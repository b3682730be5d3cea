//! What one manager has declared of an object, as a declaration that could be applied again.

use serde_json::{Map, Value};

use crate::fieldset::{FieldSet, Node, PathElement};
use crate::managers::{self, ManagersError, Operation};
use crate::shape::{ListKey, Shape};

/// The declaration of an applier: what it owns of an object, with what identifies the object and the items of its lists.
/// `None` if it has applied nothing.
///
/// # Errors
/// When the object's managers are not understood.
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
    let mut extracted = picked(shape, object, &own.fields);
    if let Value::Object(fields) = &mut extracted {
        fields.extend(["apiVersion", "kind"].into_iter().filter_map(|name| copied(object, name)));
    }
    if let (Some(from), Some(metadata)) = (object.get("metadata"), managers::metadata_mut(&mut extracted)) {
        metadata.extend(["name", "namespace"].into_iter().filter_map(|name| copied(from, name)));
    }
    Ok(Some(extracted))
}

fn copied(from: &Value, name: &str) -> Option<(String, Value)> {
    Some((name.to_owned(), from.get(name)?.clone()))
}

/// The parts of a value that are in a set of fields below it.
fn picked(shape: &Shape, value: &Value, fields: &FieldSet) -> Value {
    match (value, shape) {
        (Value::Object(map), _) if shape.is_granular_map() => {
            let mut picked = Map::new();
            for (element, node) in &fields.nodes {
                let PathElement::Field(name) = element else { continue };
                if let Some(value) = map.get(name) {
                    picked.insert(name.clone(), owned(shape.field(name), value, node));
                }
            }
            Value::Object(picked)
        }
        (Value::Array(list), _) => match shape.items(list) {
            None => value.clone(),
            Some((items, item)) => {
                let held = items.into_iter().filter_map(|(element, value)| Some((value, fields.nodes.get(&element)?)));
                Value::Array(held.map(|(value, node)| with_keys(shape, value, owned(item, value, node))).collect())
            }
        },
        _ => value.clone(),
    }
}

/// A value of which a node owns all, or what is below it.
fn owned(shape: &Shape, value: &Value, node: &Node) -> Value {
    let is_open = (value.is_object() && shape.is_granular_map()) || (value.is_array() && shape.is_associative());
    if is_open { picked(shape, value, &node.below) } else { value.clone() }
}

/// An item with the fields that identify it, which somebody else may own.
fn with_keys(list: &Shape, item: &Value, mut picked: Value) -> Value {
    if let (Shape::Keyed { keys, .. }, Value::Object(fields)) = (list, &mut picked) {
        for ListKey { name, .. } in keys {
            if let Some(value) = item.get(name) {
                fields.entry(name).or_insert_with(|| value.clone());
            }
        }
    }
    picked
}
