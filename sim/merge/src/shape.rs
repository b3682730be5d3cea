//! What merging must know of a type: which lists are keyed, which are sets, which values are one piece.
//!
//! Where it comes from is the business of `schema`: built-in kinds are in OpenAPI documents, custom resources bring their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::fieldset::{FieldSet, Node, PathElement};

/// A field that identifies the items of a keyed list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListKey {
    /// The field's name.
    pub name: String,
    /// What an item without the field means, such as `TCP` for the protocol of a port.
    pub default: Option<Value>,
}

/// How the values at one place of a document merge.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Nothing is known: maps merge by field, lists are one piece.
    Deduced,
    /// One piece, whatever it holds.
    Atomic,
    /// A type with named fields. A field that is not named is [`Shape::Deduced`].
    Struct(BTreeMap<String, Arc<Shape>>),
    /// A map from names to values of one shape.
    Map(Arc<Shape>),
    /// A list whose items are unique and owned one by one.
    Set,
    /// A list whose items are identified by some of their fields.
    Keyed {
        /// The identifying fields.
        keys: Vec<ListKey>,
        /// The shape of each item.
        item: Arc<Shape>,
    },
}

/// Items of a list by identity.
type Groups<'a> = Vec<(PathElement, Vec<&'a Value>)>;

static DEDUCED: Shape = Shape::Deduced;

impl Shape {
    /// The shape of a kind of which only the metadata is known, such as a custom resource without a schema.
    #[must_use]
    pub fn object() -> Self {
        structure([("metadata", metadata())])
    }

    /// The shape of a field of a map.
    pub(crate) fn field(&self, name: &str) -> &Self {
        match self {
            Self::Struct(fields) => fields.get(name).map_or(&DEDUCED, |shape| shape),
            Self::Map(value) => value,
            Self::Deduced | Self::Atomic | Self::Set | Self::Keyed { .. } => &DEDUCED,
        }
    }

    /// The shape of the items of a list.
    pub(crate) fn item(&self) -> &Self {
        match self {
            Self::Keyed { item, .. } => item,
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) | Self::Set => &DEDUCED,
        }
    }

    /// What a strategic patch knows an element of a list by.
    pub(crate) fn patch_key<'a>(&self, element: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Keyed { keys, .. } => element.get(&keys.first()?.name),
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) | Self::Set => Some(element),
        }
    }

    /// Whether the type names this field, so that owning the field itself says nothing beyond owning what is in it.
    pub(crate) fn names(&self, field: &str) -> bool {
        matches!(self, Self::Struct(fields) if fields.contains_key(field))
    }

    /// Whether maps of this shape merge field by field.
    pub(crate) fn is_granular_map(&self) -> bool {
        match self {
            Self::Deduced | Self::Struct(_) | Self::Map(_) => true,
            Self::Atomic | Self::Set | Self::Keyed { .. } => false,
        }
    }

    /// Whether lists of this shape merge item by item.
    pub(crate) fn is_associative(&self) -> bool {
        match self {
            Self::Set | Self::Keyed { .. } => true,
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) => false,
        }
    }

    /// The items of a list by identity, in their order, with the shape of the items. `None` when the list is one piece:
    /// by its shape, or because an item has no identity or one that another item has too.
    pub(crate) fn items<'a>(&self, list: &'a [Value]) -> Option<(Vec<(PathElement, &'a Value)>, &Self)> {
        if !self.is_associative() {
            return None;
        }
        let identified: Option<Vec<_>> = list.iter().map(|value| Some((self.identity(value)?, value))).collect();
        let identified = identified?;
        let unique: std::collections::BTreeSet<&PathElement> = identified.iter().map(|(element, _)| element).collect();
        (unique.len() == identified.len()).then_some((identified, self.item()))
    }

    /// The items of a list in which some have the identity of others, together with those; in the order of the first.
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

    /// What tells an item of a list of this shape from the others.
    pub(crate) fn identity(&self, item: &Value) -> Option<PathElement> {
        match self {
            Self::Set => Some(PathElement::Value(item.to_string())),
            Self::Keyed { keys, .. } => key_of(keys, item),
            Self::Deduced | Self::Atomic | Self::Struct(_) | Self::Map(_) => None,
        }
    }

    /// Every field of a document, as an applier of it owns them.
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
                    let hollow = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                    below.member |= hollow || !self.names(name);
                    if !hollow {
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
                        // Of items that cannot be told apart nobody owns the parts.
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

fn key_of(keys: &[ListKey], item: &Value) -> Option<PathElement> {
    let mut values = BTreeMap::new();
    for key in keys {
        values.insert(key.name.as_str(), item.get(&key.name).or(key.default.as_ref())?);
    }
    Some(PathElement::Key(serde_json::to_string(&values).ok()?))
}

fn structure<const N: usize>(fields: [(&str, Shape); N]) -> Shape {
    Shape::Struct(fields.into_iter().map(|(name, shape)| (name.to_owned(), Arc::new(shape))).collect())
}

fn keyed(keys: &[&str], item: Shape) -> Shape {
    let keys = keys.iter().map(|name| ListKey { name: (*name).to_owned(), default: None }).collect();
    Shape::Keyed { keys, item: Arc::new(item) }
}

/// The metadata of every kind.
pub(crate) fn metadata() -> Shape {
    let names = Shape::Map(Arc::new(Shape::Deduced));
    structure([
        ("annotations", names.clone()),
        ("finalizers", Shape::Set),
        ("labels", names),
        ("ownerReferences", keyed(&["uid"], Shape::Atomic)),
    ])
}
