//! Removes from a document the fields that its manager no longer declares and no other manager owns.
//!
//! The steps are those of the real server, because their order is observable: the previously declared fields are removed,
//! owned fields are restored, and of the rest only previously declared fields stay removed. An empty map can get lost.

use serde_json::{Map, Value};

use crate::fieldset::{FieldSet, Node, PathElement};
use crate::shape::Shape;

/// Removes the fields of `last` that are not in `kept`, the set of all fields that this declaration and the others own.
pub(crate) fn prune(shape: &Shape, merged: &Value, last: &FieldSet, kept: &FieldSet) -> Value {
    let all_fields = |document: &Value| with_declared_parents(shape, &shape.fields_of(document));
    let (all, last) = (all_fields(merged), with_declared_parents(shape, last));
    let without = all_fields(&remove(shape, merged, &last));
    let unowned = all.difference(&without.union(&with_declared_parents(shape, kept)));
    let owned = all_fields(&remove(shape, merged, &unowned));
    remove(shape, merged, &all.difference(&owned).intersection(&last))
}

/// Adds to a set the parents of its paths, where the type declares them.
fn with_declared_parents(shape: &Shape, set: &FieldSet) -> FieldSet {
    let convert = |(element, node): (&PathElement, &Node)| {
        let (is_declared, inner) = match element {
            PathElement::Field(name) => (shape.declares_field(name), shape.field(name)),
            PathElement::Key(_) | PathElement::Value(_) => (false, shape.item()),
        };
        let member = node.member || (is_declared && !node.below.is_empty());
        (element.clone(), Node { member, below: with_declared_parents(inner, &node.below) })
    };
    FieldSet { nodes: set.nodes.iter().map(convert).collect() }
}

/// Removes these paths from a document. A map or a list that becomes empty turns into null, and so does an atomic one.
fn remove(shape: &Shape, value: &Value, paths: &FieldSet) -> Value {
    if paths.is_empty() {
        return value.clone();
    }
    match value {
        Value::Object(map) if shape.is_granular_map() => {
            let left: Map<String, Value> = map
                .iter()
                .filter_map(|(name, value)| {
                    let node = paths.nodes.get(&PathElement::Field(name.clone()));
                    Some((name.clone(), remaining(shape.field(name), value, node)?))
                })
                .collect();
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        Value::Array(list) if shape.is_associative() => {
            let left: Vec<Value> = list
                .iter()
                .filter_map(|value| {
                    let element = shape.identity(value);
                    remaining(shape.item(), value, element.and_then(|element| paths.nodes.get(&element)))
                })
                .collect();
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        Value::Object(_) | Value::Array(_) => Value::Null,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Returns what remains of a field or an item.
fn remaining(shape: &Shape, value: &Value, removed: Option<&Node>) -> Option<Value> {
    match removed {
        Some(node) if node.member => None,
        Some(node) => Some(remove(shape, value, &node.below)),
        None => Some(value.clone()),
    }
}
