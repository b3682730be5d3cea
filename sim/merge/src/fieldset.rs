//! Sets of field paths, and their serialized form `fieldsV1`.
//!
//! A set is a tree: a node may be a member itself (`.`) and have members below it. Index elements (`i:`) are rejected as
//! malformed: no shape produces them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// Bounds the recursion on input: no Kubernetes type is nested this deeply.
const DEPTH_MAX: usize = 128;

/// One step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of a map, `f:name`.
    Field(String),
    /// An item of a list that is keyed by fields of its items, `k:{…}`: the canonical JSON text of the keys.
    Key(String),
    /// An item of a set, `v:…`: the canonical JSON text of the value.
    Value(String),
}

impl PathElement {
    fn to_fields_v1(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(keys) => ["k:", keys].concat(),
            Self::Value(value) => ["v:", value].concat(),
        }
    }

    fn from_fields_v1(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => {
                // Parsed and serialized again, so that differently spaced or ordered keys identify the same item.
                let keys: BTreeMap<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::Key(serde_json::to_string(&keys).ok()?))
            }
            "v" => {
                let value: Value = serde_json::from_str(rest).ok()?;
                Some(Self::Value(value.to_string()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for PathElement {
    /// Formats the element as the API server does in conflict messages: `.spec`, `[name="app"]`, `[="x"]`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Value(value) => write!(formatter, "[={value}]"),
            Self::Key(keys) => {
                let parsed: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let parts: Vec<String> = parsed.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(formatter, "[{}]", parts.join(","))
            }
        }
    }
}

/// A `fieldsV1` document that does not follow the format.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FieldSetError {
    /// The document or one of its values is not a map.
    #[error("fieldsV1 must consist of maps")]
    NotAMap,
    /// A key that is neither `.` nor starts with `f:`, `k:` or `v:`.
    #[error("fieldsV1 has the unknown path element {0:?}")]
    Element(String),
    /// Nested deeper than any Kubernetes type.
    #[error("fieldsV1 is nested too deeply")]
    Depth,
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(crate) nodes: BTreeMap<PathElement, Node>,
}

/// Node of the tree: one path and the paths below it. Never empty inside a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Returns the empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True if the set has no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds one path. The empty path is ignored: a whole document has no owner.
    pub fn insert(&mut self, path: &[PathElement]) {
        self.insert_elements(path.iter().cloned());
    }

    /// Adds the path with these elements.
    pub(crate) fn insert_elements(&mut self, mut elements: impl Iterator<Item = PathElement>) {
        let Some(first) = elements.next() else { return };
        let mut node = self.nodes.entry(first).or_default();
        for element in elements {
            node = node.below.nodes.entry(element).or_default();
        }
        node.member = true;
    }

    /// True if this path itself is in the set.
    #[must_use]
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        self.nodes.get(first).is_some_and(|node| if rest.is_empty() { node.member } else { node.below.contains(rest) })
    }

    /// Returns the paths that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.add(other);
        all
    }

    /// Adds all paths of the other set.
    pub(crate) fn add(&mut self, other: &Self) {
        for (element, other_node) in &other.nodes {
            match self.nodes.get_mut(element) {
                None => drop(self.nodes.insert(element.clone(), other_node.clone())),
                Some(node) => {
                    node.member |= other_node.member;
                    node.below.add(&other_node.below);
                }
            }
        }
    }

    /// Returns the paths of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// Removes all paths of the other set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (element, other_node) in &other.nodes {
            let Some(node) = self.nodes.get_mut(element) else { continue };
            node.member &= !other_node.member;
            node.below.subtract(&other_node.below);
            if node.is_empty() {
                self.nodes.remove(element);
            }
        }
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let both = self.nodes.iter().filter_map(|(element, node)| {
            let other_node = other.nodes.get(element)?;
            let below = node.below.intersection(&other_node.below);
            let node = Node { member: node.member && other_node.member, below };
            (!node.is_empty()).then(|| (element.clone(), node))
        });
        Self { nodes: both.collect() }
    }

    /// Returns every path: at each level first the members themselves, then the paths below them, both sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            prefix.push(element.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// Returns the set in its serialized form `fieldsV1`.
    #[must_use]
    pub fn to_fields_v1(&self) -> Value {
        let mut fields = Map::new();
        for (element, node) in &self.nodes {
            let mut below = node.below.to_fields_v1();
            if let (true, false, Value::Object(map)) = (node.member, node.below.is_empty(), &mut below) {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(element.to_fields_v1(), below);
        }
        Value::Object(fields)
    }

    /// Parses a `fieldsV1` document.
    ///
    /// # Errors
    /// When the document does not follow the format.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldSetError> {
        Self::read(fields, 0)
    }

    fn read(fields: &Value, depth: usize) -> Result<Self, FieldSetError> {
        if depth > DEPTH_MAX {
            return Err(FieldSetError::Depth);
        }
        let Value::Object(map) = fields else {
            return Err(FieldSetError::NotAMap);
        };
        let mut set = Self::new();
        for (text, below) in map.iter().filter(|(text, _)| *text != ".") {
            let element = PathElement::from_fields_v1(text).ok_or_else(|| FieldSetError::Element(text.clone()))?;
            let member = below.as_object().is_some_and(|map| map.is_empty() || map.contains_key("."));
            set.nodes.insert(element, Node { member, below: Self::read(below, depth + 1)? });
        }
        Ok(set)
    }
}
