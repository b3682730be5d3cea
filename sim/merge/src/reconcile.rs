//! Ownership that was written under an earlier schema: what has become one piece since is owned as one piece.
//!
//! The other way round nothing is to be done: whoever owned the whole of what is taken apart now goes on owning the place.

use crate::fieldset::{FieldSet, Node, PathElement};
use crate::shape::Shape;

/// The same fields under today's schema; `None` if nothing is different.
pub(crate) fn reconcile(shape: &Shape, fields: &FieldSet) -> Option<FieldSet> {
    let changed: Vec<(&PathElement, Node)> =
        fields.nodes.iter().filter_map(|(element, node)| Some((element, node_under(shape, element, node)?))).collect();
    if changed.is_empty() {
        return None;
    }
    let mut reconciled = fields.clone();
    reconciled.nodes.extend(changed.into_iter().map(|(element, node)| (element.clone(), node)));
    Some(reconciled)
}

fn node_under(shape: &Shape, element: &PathElement, node: &Node) -> Option<Node> {
    let below = match (shape, element) {
        (Shape::Struct(_) | Shape::Map(_), PathElement::Field(name)) => shape.field(name),
        (Shape::Keyed { item, .. }, PathElement::Key(_)) => item,
        // What no schema speaks of is as it was.
        (Shape::Struct(_) | Shape::Map(_) | Shape::Keyed { .. }, _) => return None,
        (Shape::Deduced | Shape::Atomic | Shape::Set, _) => return None,
    };
    if *below == Shape::Atomic {
        return (!node.below.is_empty()).then(|| Node { member: true, below: FieldSet::new() });
    }
    reconcile(below, &node.below).map(|fields| Node { member: node.member, below: fields })
}
