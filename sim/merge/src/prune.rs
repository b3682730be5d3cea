//! Takes out of a document what its manager no longer declares and nobody else owns.

use serde_json::Value;

use crate::fieldset::{FieldSet, PathElement};
use crate::shape::Shape;

/// Removes the fields of `last` of which `kept` owns neither the field nor anything in it. A container that becomes
/// empty by it goes too, as the typed encoding of a real server drops it. Tells whether anything was removed.
pub(crate) fn prune(shape: &Shape, value: &mut Value, last: &FieldSet, kept: &FieldSet) -> bool {
    let mut removed = false;
    match value {
        Value::Object(map) if shape.is_granular_map() => {
            for (element, node) in &last.nodes {
                let PathElement::Field(name) = element else {
                    continue;
                };
                let Some(child) = map.get_mut(name) else {
                    continue;
                };
                let held = kept.nodes.get(element);
                // A field that the type names goes as a whole once nobody owns anything in it, with what was filled in.
                let is_held = held.is_some_and(|held| held.member || shape.names(name));
                if !is_held && (node.member || shape.names(name)) {
                    map.remove(name);
                    removed = true;
                    continue;
                }
                let was_hollow = is_hollow(child);
                let empty = FieldSet::new();
                removed |= prune(shape.field(name), child, &node.below, held.map_or(&empty, |held| &held.below));
                // What was emptied here goes; where somebody still owns it, nothing is left of it but that.
                if !was_hollow && is_hollow(child) {
                    if held.is_some() {
                        *child = Value::Null;
                    } else {
                        map.remove(name);
                    }
                }
            }
        }
        Value::Array(list) => {
            let Some((items, item)) = shape.items(list) else {
                return false;
            };
            let elements: Vec<PathElement> = items.into_iter().map(|(element, _)| element).collect();
            let mut remaining = Vec::with_capacity(list.len());
            for (element, mut value) in elements.into_iter().zip(std::mem::take(list)) {
                let held = kept.nodes.get(&element);
                if let Some(node) = last.nodes.get(&element) {
                    // Owning something in an element is not owning the element.
                    if node.member && !held.is_some_and(|held| held.member) {
                        removed = true;
                        continue;
                    }
                    let empty = FieldSet::new();
                    removed |= prune(item, &mut value, &node.below, held.map_or(&empty, |held| &held.below));
                }
                remaining.push(value);
            }
            *list = remaining;
        }
        _ => {}
    }
    removed
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
