//! What changed between two versions of a document, as sets of fields.

use std::sync::LazyLock;

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

    /// The fields that the newer document gives a value to.
    pub(crate) fn set(self) -> FieldSet {
        let mut set = self.modified;
        set.add(&self.added);
        set
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

/// One step of the way to where the walk is. Most of what is compared is equal, so that the name of a field is copied
/// only when something is found.
enum Step<'a> {
    Field(&'a str),
    Element(PathElement),
}

struct Walk<'a> {
    result: Comparison,
    path: Vec<Step<'a>>,
}

impl<'a> Walk<'a> {
    fn at(&mut self, step: Step<'a>, visit: impl FnOnce(&mut Self)) {
        self.path.push(step);
        visit(self);
        self.path.pop();
    }

    /// Notes that something is found here.
    fn note(&mut self, found: Found) {
        let steps = self.path.iter().map(|step| match step {
            Step::Field(name) => PathElement::Field((*name).to_owned()),
            Step::Element(element) => element.clone(),
        });
        match found {
            Found::Removed => self.result.removed.insert_steps(steps),
            Found::Modified => self.result.modified.insert_steps(steps),
            Found::Added => self.result.added.insert_steps(steps),
        }
    }

    fn both(&mut self, shape: &Shape, old: &'a Value, new: &'a Value) {
        // A list or a map that is null is there, and has nothing in it.
        static NO_MAP: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        match (old, new) {
            (Value::Null, Value::Object(new)) if shape.is_granular_map() => self.maps(shape, &NO_MAP, new),
            (Value::Object(old), Value::Null) if shape.is_granular_map() => self.maps(shape, old, &NO_MAP),
            (Value::Null, Value::Array(list)) if shape.is_associative() => self.both_lists(shape, old, &[], new, list),
            (Value::Array(list), Value::Null) if shape.is_associative() => self.both_lists(shape, old, list, new, &[]),
            (Value::Object(old), Value::Object(new)) if shape.is_granular_map() => self.maps(shape, old, new),
            (Value::Array(old_list), Value::Array(new_list)) => self.both_lists(shape, old, old_list, new, new_list),
            _ if old != new => self.note(Found::Modified),
            _ => {}
        }
    }

    fn both_lists(
        &mut self,
        shape: &Shape,
        old: &'a Value,
        old_list: &'a [Value],
        new: &'a Value,
        new_list: &'a [Value],
    ) {
        // Telling items apart is dear.
        if old == new {
            return;
        }
        if let (Some((old, item)), Some((new, _))) = (shape.items(old_list), shape.items(new_list)) {
            self.lists(item, &old, &new);
        } else if let (Some((old, item)), Some((new, _))) = (shape.groups(old_list), shape.groups(new_list)) {
            self.grouped(item, &old, &new);
        } else {
            self.note(Found::Modified);
        }
    }

    fn maps(&mut self, shape: &Shape, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, value) in old {
            let field = shape.field(name);
            self.at(Step::Field(name), |walk| match new.get(name) {
                Some(newer) => walk.both(field, value, newer),
                None => walk.one(field, value, Side::Removed),
            });
        }
        for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.at(Step::Field(name), |walk| walk.one(shape.field(name), value, Side::Added));
        }
    }

    fn lists(&mut self, item: &Shape, old: &[(PathElement, &'a Value)], new: &[(PathElement, &'a Value)]) {
        for (key, value) in old {
            self.at(Step::Element(key.clone()), |walk| match new.iter().find(|(other, _)| other == key) {
                Some((_, newer)) => walk.both(item, value, newer),
                None => walk.one(item, value, Side::Removed),
            });
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.iter().any(|(other, _)| other == key)) {
            self.at(Step::Element(key.clone()), |walk| walk.one(item, value, Side::Added));
        }
    }

    /// Lists in which items cannot be told apart: those are compared as one, and are owned without their parts.
    fn grouped(&mut self, item: &Shape, old: &[Group<'a>], new: &[Group<'a>]) {
        for (key, group) in old {
            let newer = new.iter().find(|(other, _)| other == key).map(|(_, newer)| newer.as_slice());
            self.at(Step::Element(key.clone()), |walk| match (group.as_slice(), newer) {
                ([value], Some([newer])) => walk.both(item, value, newer),
                ([value], None) => walk.one(item, value, Side::Removed),
                (_, None) => walk.note(Found::Removed),
                (group, Some(newer)) if group != newer => {
                    if let [value] = group {
                        walk.parts(item, value, Side::Removed);
                    }
                    if let [value] = newer {
                        walk.parts(item, value, Side::Added);
                    }
                    walk.note(Found::Modified);
                }
                _ => {}
            });
        }
        for (key, group) in new.iter().filter(|(key, _)| !old.iter().any(|(other, _)| other == key)) {
            self.at(Step::Element(key.clone()), |walk| match group.as_slice() {
                [value] => walk.one(item, value, Side::Added),
                _ => walk.note(Found::Added),
            });
        }
    }

    /// A value that only one side has: the value and everything in it.
    fn one(&mut self, shape: &Shape, value: &'a Value, side: Side) {
        self.note(match side {
            Side::Removed => Found::Removed,
            Side::Added => Found::Added,
        });
        self.parts(shape, value, side);
    }

    fn parts(&mut self, shape: &Shape, value: &'a Value, side: Side) {
        match value {
            Value::Object(map) if shape.is_granular_map() => {
                for (name, value) in map {
                    self.at(Step::Field(name), |walk| walk.one(shape.field(name), value, side));
                }
            }
            Value::Array(list) => {
                for (key, group, item) in shape
                    .groups(list)
                    .into_iter()
                    .flat_map(|(groups, item)| groups.into_iter().map(move |(k, g)| (k, g, item)))
                {
                    self.at(Step::Element(key), |walk| match (group.as_slice(), side) {
                        ([value], side) => walk.one(item, value, side),
                        (_, Side::Removed) => walk.note(Found::Removed),
                        (_, Side::Added) => walk.note(Found::Added),
                    });
                }
            }
            _ => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Found {
    Removed,
    Modified,
    Added,
}

#[derive(Clone, Copy)]
enum Side {
    Removed,
    Added,
}
