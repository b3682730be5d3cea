//! The merge behaviour of a type: which lists are keyed, which are sets, which values are atomic.
//!
//! Reading shapes from OpenAPI documents and CRD schemas is in `schema`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::fieldset::{FieldSet, Node, PathElement};

/// A field that identifies the items of a keyed list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListKey {
    /// Name of the field.
    pub name: String,
    /// Value that an item without the field has, such as `TCP` for the protocol of a port.
    pub default: Option<Value>,
}

/// Merge behaviour of the values at one position of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// No schema: maps merge field by field, lists are atomic.
    Deduced,
    /// Atomic: replaced and owned as a whole.
    Atomic,
    /// A type with declared fields. An undeclared field is [`Shape::Deduced`].
    Struct(BTreeMap<String, Arc<Shape>>),
    /// A map with arbitrary keys, and values of one shape.
    Map(Arc<Shape>),
    /// A list of unique items, each owned separately.
    Set,
    /// A list whose items are identified by some of their fields.
    Keyed {
        /// Fields that identify an item.
        keys: Vec<ListKey>,
        /// Shape of each item.
        item: Arc<Shape>,
    },
}

/// Items of a list, grouped by identity.
type Groups<'a> = Vec<(PathElement, Vec<&'a Value>)>;

static DEDUCED: Shape = Shape::Deduced;

impl Shape {
    /// Returns the shape of a kind of which only the metadata is known, such as a custom resource without a schema.
    #[must_use]
    pub fn object() -> Self {
        struct_shape([("metadata", metadata_shape())])
    }

    /// Returns the shape of a field of a map.
    pub(crate) fn field(&self, name: &str) -> &Self {
        match self {
            Self::Struct(fields) => fields.get(name).map_or(&DEDUCED, |shape| shape),
            Self::Map(value) => value,
            Self::Deduced | Self::Atomic | Self::Set | Self::Keyed { .. } => &DEDUCED,
        }
    }

    /// Returns the shape of the items of a list.
    pub(crate) fn item(&self) -> &Self {
        match self {
            Self::Keyed { item, .. } => item,
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) | Self::Set => &DEDUCED,
        }
    }

    /// Returns the value by which a strategic merge patch identifies an element of a list.
    pub(crate) fn patch_key<'a>(&self, element: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Keyed { keys, .. } => element.get(&keys.first()?.name),
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) | Self::Set => Some(element),
        }
    }

    /// True if the type declares this field. The field itself is then not recorded as owned, only its content.
    pub(crate) fn declares_field(&self, field: &str) -> bool {
        matches!(self, Self::Struct(fields) if fields.contains_key(field))
    }

    /// True if maps of this shape merge field by field.
    pub(crate) fn is_granular_map(&self) -> bool {
        match self {
            Self::Deduced | Self::Struct(_) | Self::Map(_) => true,
            Self::Atomic | Self::Set | Self::Keyed { .. } => false,
        }
    }

    /// True if lists of this shape merge item by item.
    pub(crate) fn is_associative(&self) -> bool {
        match self {
            Self::Set | Self::Keyed { .. } => true,
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) => false,
        }
    }

    /// Returns the items of a list with their identities, in list order, and the shape of the items. `None` if the list is
    /// atomic: by its shape, or because an item has no identity or shares it with another item.
    pub(crate) fn items<'a>(&self, list: &'a [Value]) -> Option<(Vec<(PathElement, &'a Value)>, &Self)> {
        if !self.is_associative() {
            return None;
        }
        let identified: Option<Vec<_>> = list.iter().map(|value| Some((self.identity(value)?, value))).collect();
        let identified = identified?;
        let unique: std::collections::BTreeSet<&PathElement> = identified.iter().map(|(element, _)| element).collect();
        (unique.len() == identified.len()).then_some((identified, self.item()))
    }

    /// Returns the items of a list grouped by identity, in the order of each group's first item.
    pub(crate) fn groups<'a>(&self, list: &'a [Value]) -> Option<(Groups<'a>, &Self)> {
        if !self.is_associative() {
            return None;
        }
        let mut groups: Groups<'_> = Vec::new();
        for value in list {
            let element = self.identity(value)?;
            match groups.iter_mut().find(|(known, _)| *known == element) {
                Some((_, group)) => group.push(value),
                None => groups.push((element, vec![value])),
            }
        }
        Some((groups, self.item()))
    }

    /// Returns the identity of an item of a list of this shape.
    pub(crate) fn identity(&self, item: &Value) -> Option<PathElement> {
        match self {
            Self::Set => Some(PathElement::Value(item.to_string())),
            Self::Keyed { keys, .. } => key_element(keys, item),
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) => None,
        }
    }

    /// Returns every field of a document, as the set that an applier of the document owns.
    #[must_use]
    pub fn fields_of(&self, document: &Value) -> FieldSet {
        let mut root = Node::default();
        self.collect(document, &mut root);
        root.below
    }

    fn collect(&self, value: &Value, node: &mut Node) {
        match value {
            Value::Object(map) if self.is_granular_map() => {
                for (name, value) in map {
                    let below = node.below.nodes.entry(PathElement::Field(name.clone())).or_default();
                    let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                    below.member |= is_empty || !self.declares_field(name);
                    if !is_empty {
                        self.field(name).collect(value, below);
                    }
                }
                // An empty associative list leaves a node without a path; the set must not keep it.
                node.below.nodes.retain(|_, below| below.member || !below.below.is_empty());
            }
            Value::Array(list) => match self.groups(list) {
                None => node.member = true,
                Some((groups, shape)) => {
                    for (element, group) in groups {
                        let below = node.below.nodes.entry(element).or_default();
                        below.member = true;
                        // Fields inside items with the same identity have no owner.
                        if let [Value::Object(_)] = group.as_slice() {
                            shape.collect(group[0], below);
                        }
                    }
                }
            },
            _ => node.member = true,
        }
    }
}

fn key_element(keys: &[ListKey], item: &Value) -> Option<PathElement> {
    let mut values = BTreeMap::new();
    for key in keys {
        values.insert(key.name.as_str(), item.get(&key.name).or(key.default.as_ref())?);
    }
    Some(PathElement::Key(serde_json::to_string(&values).ok()?))
}

fn struct_shape<const N: usize>(fields: [(&str, Shape); N]) -> Shape {
    Shape::Struct(fields.into_iter().map(|(name, shape)| (name.to_owned(), Arc::new(shape))).collect())
}

fn keyed_shape(keys: &[&str], item: Shape) -> Shape {
    let keys = keys.iter().map(|name| ListKey { name: (*name).to_owned(), default: None }).collect();
    Shape::Keyed { keys, item: Arc::new(item) }
}

/// Returns the shape of `metadata`, which is the same for every kind.
pub(crate) fn metadata_shape() -> Shape {
    let string_map = Shape::Map(Arc::new(Shape::Deduced));
    struct_shape([
        ("annotations", string_map.clone()),
        ("finalizers", Shape::Set),
        ("labels", string_map),
        ("ownerReferences", keyed_shape(&["uid"], Shape::Atomic)),
    ])
}
