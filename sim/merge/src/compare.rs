//! What changed between two versions of a document, as sets of fields.

use serde_json::{Map, Value};

use crate::fieldset::{FieldSet, PathElement};
use crate::shape::Shape;

/// The difference between two documents. The three sets are disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the older document has.
    pub removed: FieldSet,
    /// Fields that both have, with different values.
    pub modified: FieldSet,
    /// Fields that only the newer document has.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether the documents are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// Compares two documents of one shape.
#[must_use]
pub fn compare(shape: &Shape, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk { result: Comparison::default(), path: Vec::new() };
    walk.both(shape, old, new);
    walk.result
}

/// Items of a list that have one identity.
type Group<'a> = (PathElement, Vec<&'a Value>);

struct Walk {
    result: Comparison,
    path: Vec<PathElement>,
}

impl Walk {
    fn at(&mut self, element: PathElement, visit: impl FnOnce(&mut Self)) {
        self.path.push(element);
        visit(self);
        self.path.pop();
    }

    fn both(&mut self, shape: &Shape, old: &Value, new: &Value) {
        // A list or a map that is null is there, and has nothing in it.
        let (no_map, no_list) = (Map::new(), Vec::new());
        match (old, new) {
            (Value::Null, Value::Object(new)) if shape.is_granular_map() => self.maps(shape, &no_map, new),
            (Value::Object(old), Value::Null) if shape.is_granular_map() => self.maps(shape, old, &no_map),
            (Value::Null, Value::Array(list)) if shape.is_associative() => {
                self.both_lists(shape, old, &no_list, new, list)
            }
            (Value::Array(list), Value::Null) if shape.is_associative() => {
                self.both_lists(shape, old, list, new, &no_list)
            }
            (Value::Object(old), Value::Object(new)) if shape.is_granular_map() => self.maps(shape, old, new),
            (Value::Array(old_list), Value::Array(new_list)) => self.both_lists(shape, old, old_list, new, new_list),
            _ if old != new => self.result.modified.insert(&self.path),
            _ => {}
        }
    }

    fn both_lists(&mut self, shape: &Shape, old: &Value, old_list: &[Value], new: &Value, new_list: &[Value]) {
        if let (Some((old, item)), Some((new, _))) = (shape.items(old_list), shape.items(new_list)) {
            self.lists(item, &old, &new);
        } else if let (Some((old, item)), Some((new, _))) = (shape.groups(old_list), shape.groups(new_list)) {
            self.grouped(item, &old, &new);
        } else if old != new {
            self.result.modified.insert(&self.path);
        }
    }

    fn maps(&mut self, shape: &Shape, old: &Map<String, Value>, new: &Map<String, Value>) {
        for (name, value) in old {
            let field = shape.field(name);
            self.at(PathElement::Field(name.clone()), |walk| match new.get(name) {
                Some(newer) => walk.both(field, value, newer),
                None => walk.one(field, value, Side::Removed),
            });
        }
        for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.at(PathElement::Field(name.clone()), |walk| walk.one(shape.field(name), value, Side::Added));
        }
    }

    fn lists(&mut self, item: &Shape, old: &[(PathElement, &Value)], new: &[(PathElement, &Value)]) {
        for (key, value) in old {
            self.at(key.clone(), |walk| match new.iter().find(|(other, _)| other == key) {
                Some((_, newer)) => walk.both(item, value, newer),
                None => walk.one(item, value, Side::Removed),
            });
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.iter().any(|(other, _)| other == key)) {
            self.at(key.clone(), |walk| walk.one(item, value, Side::Added));
        }
    }

    /// Lists in which items cannot be told apart: those are compared as one, and are owned without their parts.
    fn grouped(&mut self, item: &Shape, old: &[Group<'_>], new: &[Group<'_>]) {
        for (key, group) in old {
            let newer = new.iter().find(|(other, _)| other == key).map(|(_, newer)| newer.as_slice());
            self.at(key.clone(), |walk| match (group.as_slice(), newer) {
                ([value], Some([newer])) => walk.both(item, value, newer),
                ([value], None) => walk.one(item, value, Side::Removed),
                (_, None) => walk.result.removed.insert(&walk.path),
                (group, Some(newer)) if group != newer => {
                    if let [value] = group {
                        walk.parts(item, value, Side::Removed);
                    }
                    if let [value] = newer {
                        walk.parts(item, value, Side::Added);
                    }
                    walk.result.modified.insert(&walk.path);
                }
                _ => {}
            });
        }
        for (key, group) in new.iter().filter(|(key, _)| !old.iter().any(|(other, _)| other == key)) {
            self.at(key.clone(), |walk| match group.as_slice() {
                [value] => walk.one(item, value, Side::Added),
                _ => walk.result.added.insert(&walk.path),
            });
        }
    }

    /// A value that only one side has: the value and everything in it.
    fn one(&mut self, shape: &Shape, value: &Value, side: Side) {
        match side {
            Side::Removed => self.result.removed.insert(&self.path),
            Side::Added => self.result.added.insert(&self.path),
        }
        self.parts(shape, value, side);
    }

    fn parts(&mut self, shape: &Shape, value: &Value, side: Side) {
        match value {
            Value::Object(map) if shape.is_granular_map() => {
                for (name, value) in map {
                    self.at(PathElement::Field(name.clone()), |walk| walk.one(shape.field(name), value, side));
                }
            }
            Value::Array(list) => {
                for (key, group, item) in shape
                    .groups(list)
                    .into_iter()
                    .flat_map(|(groups, item)| groups.into_iter().map(move |(k, g)| (k, g, item)))
                {
                    self.at(key, |walk| match (group.as_slice(), side) {
                        ([value], side) => walk.one(item, value, side),
                        (_, Side::Removed) => walk.result.removed.insert(&walk.path),
                        (_, Side::Added) => walk.result.added.insert(&walk.path),
                    });
                }
            }
            _ => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Removed,
    Added,
}
