//! Takes out of a document what its manager no longer declares and nobody else owns.
//!
//! The steps are those of the real server, because their order shows: what was declared goes, what somebody owns comes
//! back, and of the rest only what the manager had declared stays away. A map that says nothing can be lost on the way.

use serde_json::{Map, Value};

use crate::fieldset::{FieldSet, Node, PathElement};
use crate::shape::Shape;

/// The document without the fields of `last` that are not in `kept`, which has what this declaration and all others own.
pub(crate) fn prune(shape: &Shape, merged: &Value, last: &FieldSet, kept: &FieldSet) -> Value {
    let fields = |document: &Value| with_named(shape, &shape.fields_of(document));
    let (all, last) = (fields(merged), with_named(shape, last));
    let without = fields(&remove(shape, merged, &last));
    let unowned = all.difference(&without.union(&with_named(shape, kept)));
    let owned = fields(&remove(shape, merged, &unowned));
    remove(shape, merged, &all.difference(&owned).intersection(&last))
}

/// The set with the fields that its paths lead through, where the type names them.
fn with_named(shape: &Shape, set: &FieldSet) -> FieldSet {
    let named = |(element, node): (&PathElement, &Node)| {
        let (names, inner) = match element {
            PathElement::Field(name) => (shape.names(name), shape.field(name)),
            PathElement::Key(_) | PathElement::Value(_) => (false, shape.item()),
        };
        let member = node.member || (names && !node.below.is_empty());
        (element.clone(), Node { member, below: with_named(inner, &node.below) })
    };
    FieldSet { nodes: set.nodes.iter().map(named).collect() }
}

/// The document without these paths. A map or a list of which nothing is left is null, and so is one that is a piece.
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

/// What stays of a field or an item.
fn remaining(shape: &Shape, value: &Value, removed: Option<&Node>) -> Option<Value> {
    match removed {
        Some(node) if node.member => None,
        Some(node) => Some(remove(shape, value, &node.below)),
        None => Some(value.clone()),
    }
}
