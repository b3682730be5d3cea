//! Compares two documents and returns the differences as field sets.

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
    /// True if the documents are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Returns the fields that the newer document adds or modifies.
    pub(crate) fn into_added_or_modified(self) -> FieldSet {
        let mut set = self.modified;
        set.add(&self.added);
        set
    }
}

/// Compares two documents of one shape.
#[must_use]
pub fn compare(shape: &Shape, old: &Value, new: &Value) -> Comparison {
    let mut comparer = Comparer { result: Comparison::default(), path: Vec::new() };
    comparer.compare_values(shape, old, new);
    comparer.result
}

/// Items of a list with the same identity.
type Group<'a> = (PathElement, Vec<&'a Value>);

/// One element of the current path. Borrows field names: most of the compared content is equal, so names are copied
/// only when a difference is recorded.
enum PathStep<'a> {
    Field(&'a str),
    Element(PathElement),
}

/// State of a comparison: the differences so far, and the path of the values being compared.
struct Comparer<'a> {
    result: Comparison,
    path: Vec<PathStep<'a>>,
}

impl<'a> Comparer<'a> {
    fn descend(&mut self, step: PathStep<'a>, visit: impl FnOnce(&mut Self)) {
        self.path.push(step);
        visit(self);
        self.path.pop();
    }

    /// Records a difference at the current path.
    fn record(&mut self, change: Change) {
        let elements = self.path.iter().map(|step| match step {
            PathStep::Field(name) => PathElement::Field((*name).to_owned()),
            PathStep::Element(element) => element.clone(),
        });
        match change {
            Change::Removed => self.result.removed.insert_elements(elements),
            Change::Modified => self.result.modified.insert_elements(elements),
            Change::Added => self.result.added.insert_elements(elements),
        }
    }

    fn compare_values(&mut self, shape: &Shape, old: &'a Value, new: &'a Value) {
        // A null list or map is compared like an empty one.
        static EMPTY_MAP: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        match (old, new) {
            (Value::Null, Value::Object(new)) if shape.is_granular_map() => self.compare_maps(shape, &EMPTY_MAP, new),
            (Value::Object(old), Value::Null) if shape.is_granular_map() => self.compare_maps(shape, old, &EMPTY_MAP),
            (Value::Null, Value::Array(list)) if shape.is_associative() => {
                self.compare_lists(shape, old, &[], new, list)
            }
            (Value::Array(list), Value::Null) if shape.is_associative() => {
                self.compare_lists(shape, old, list, new, &[])
            }
            (Value::Object(old), Value::Object(new)) if shape.is_granular_map() => self.compare_maps(shape, old, new),
            (Value::Array(old_list), Value::Array(new_list)) => self.compare_lists(shape, old, old_list, new, new_list),
            _ if old != new => self.record(Change::Modified),
            _ => {}
        }
    }

    fn compare_lists(
        &mut self,
        shape: &Shape,
        old: &'a Value,
        old_list: &'a [Value],
        new: &'a Value,
        new_list: &'a [Value],
    ) {
        // Identifying items is expensive.
        if old == new {
            return;
        }
        if let (Some((old, item)), Some((new, _))) = (shape.items(old_list), shape.items(new_list)) {
            self.compare_items(item, &old, &new);
        } else if let (Some((old, item)), Some((new, _))) = (shape.groups(old_list), shape.groups(new_list)) {
            self.compare_groups(item, &old, &new);
        } else {
            self.record(Change::Modified);
        }
    }

    fn compare_maps(&mut self, shape: &Shape, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, value) in old {
            let field = shape.field(name);
            self.descend(PathStep::Field(name), |comparer| match new.get(name) {
                Some(newer) => comparer.compare_values(field, value, newer),
                None => comparer.record_value(field, value, Side::Removed),
            });
        }
        for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.descend(PathStep::Field(name), |comparer| {
                comparer.record_value(shape.field(name), value, Side::Added)
            });
        }
    }

    fn compare_items(&mut self, item: &Shape, old: &[(PathElement, &'a Value)], new: &[(PathElement, &'a Value)]) {
        for (key, value) in old {
            self.descend(PathStep::Element(key.clone()), |comparer| match new.iter().find(|(other, _)| other == key) {
                Some((_, newer)) => comparer.compare_values(item, value, newer),
                None => comparer.record_value(item, value, Side::Removed),
            });
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.iter().any(|(other, _)| other == key)) {
            self.descend(PathStep::Element(key.clone()), |comparer| comparer.record_value(item, value, Side::Added));
        }
    }

    /// Compares lists in which several items share an identity: such items are compared as one value, without their fields.
    fn compare_groups(&mut self, item: &Shape, old: &[Group<'a>], new: &[Group<'a>]) {
        for (key, group) in old {
            let newer = new.iter().find(|(other, _)| other == key).map(|(_, newer)| newer.as_slice());
            self.descend(PathStep::Element(key.clone()), |comparer| match (group.as_slice(), newer) {
                ([value], Some([newer])) => comparer.compare_values(item, value, newer),
                ([value], None) => comparer.record_value(item, value, Side::Removed),
                (_, None) => comparer.record(Change::Removed),
                (group, Some(newer)) if group != newer => {
                    if let [value] = group {
                        comparer.record_content(item, value, Side::Removed);
                    }
                    if let [value] = newer {
                        comparer.record_content(item, value, Side::Added);
                    }
                    comparer.record(Change::Modified);
                }
                _ => {}
            });
        }
        for (key, group) in new.iter().filter(|(key, _)| !old.iter().any(|(other, _)| other == key)) {
            self.descend(PathStep::Element(key.clone()), |comparer| match group.as_slice() {
                [value] => comparer.record_value(item, value, Side::Added),
                _ => comparer.record(Change::Added),
            });
        }
    }

    /// Records a value that only one document has, and everything in it.
    fn record_value(&mut self, shape: &Shape, value: &'a Value, side: Side) {
        self.record(match side {
            Side::Removed => Change::Removed,
            Side::Added => Change::Added,
        });
        self.record_content(shape, value, side);
    }

    fn record_content(&mut self, shape: &Shape, value: &'a Value, side: Side) {
        match value {
            Value::Object(map) if shape.is_granular_map() => {
                for (name, value) in map {
                    self.descend(PathStep::Field(name), |comparer| {
                        comparer.record_value(shape.field(name), value, side)
                    });
                }
            }
            Value::Array(list) => {
                for (key, group, item) in shape
                    .groups(list)
                    .into_iter()
                    .flat_map(|(groups, item)| groups.into_iter().map(move |(k, g)| (k, g, item)))
                {
                    self.descend(PathStep::Element(key), |comparer| match (group.as_slice(), side) {
                        ([value], side) => comparer.record_value(item, value, side),
                        (_, Side::Removed) => comparer.record(Change::Removed),
                        (_, Side::Added) => comparer.record(Change::Added),
                    });
                }
            }
            _ => {}
        }
    }
}

/// Kind of a difference.
#[derive(Clone, Copy)]
enum Change {
    Removed,
    Modified,
    Added,
}

/// Kind of a difference for a value that only one document has.
#[derive(Clone, Copy)]
enum Side {
    Removed,
    Added,
}
