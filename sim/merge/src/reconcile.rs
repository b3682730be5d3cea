//! Converts field sets that were recorded under an earlier schema: fields inside a value that has since become atomic turn
//! into ownership of the whole value.
//!
//! A value that is no longer atomic needs no conversion: its owner keeps owning the position itself.

use crate::fieldset::{FieldSet, Node, PathElement};
use crate::shape::Shape;

/// Returns the fields under the current schema; `None` if nothing changed.
pub(crate) fn reconcile(shape: &Shape, fields: &FieldSet) -> Option<FieldSet> {
    let changed: Vec<(&PathElement, Node)> = fields
        .nodes
        .iter()
        .filter_map(|(element, node)| Some((element, reconcile_node(shape, element, node)?)))
        .collect();
    if changed.is_empty() {
        return None;
    }
    let mut reconciled = fields.clone();
    reconciled.nodes.extend(changed.into_iter().map(|(element, node)| (element.clone(), node)));
    Some(reconciled)
}

fn reconcile_node(shape: &Shape, element: &PathElement, node: &Node) -> Option<Node> {
    let below = match (shape, element) {
        (Shape::Struct(_) | Shape::Map(_), PathElement::Field(name)) => shape.field(name),
        (Shape::Keyed { item, .. }, PathElement::Key(_)) => item,
        // Paths outside the schema stay unchanged.
        (Shape::Struct(_) | Shape::Map(_) | Shape::Keyed { .. }, _) => return None,
        (Shape::Deduced | Shape::Atomic | Shape::Set, _) => return None,
    };
    if *below == Shape::Atomic {
        return (!node.below.is_empty()).then(|| Node { member: true, below: FieldSet::new() });
    }
    reconcile(below, &node.below).map(|fields| Node { member: node.member, below: fields })
}
