//! What the schema of a definition says about the types of its values, and under which names its fields are known to rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::types::Type;

/// Words that are no names in CEL.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// The deepest schema that is looked at.
const DEPTH_MAX: usize = 64;

/// What a schema says about a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Nothing at all: JSON as it is.
    Any,
    /// No rule may look at it, only whether it is the same.
    Hidden,
    /// A whole number or a text.
    IntOrText,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number, which may be written without a fraction.
    Double,
    /// A text.
    Text,
    /// Base64.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A day.
    Date,
    /// A stretch of time.
    Duration,
    /// A list.
    List(Arc<Shape>, ListKind),
    /// A map from texts.
    Map(Arc<Shape>),
    /// An object with known fields.
    Object(Arc<ObjectShape>),
}

/// What makes elements of a list the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Their place.
    Atomic,
    /// Their value.
    Set,
    /// The values of these fields.
    Map(Vec<String>),
}

/// The fields of an object.
#[derive(Debug, PartialEq)]
pub struct ObjectShape {
    /// Tells objects apart that are not the same type.
    pub name: String,
    /// By the names that rules use: the name that the object uses, and the shape.
    pub fields: BTreeMap<String, (String, Shape)>,
    /// By the names that the object uses, whether or not rules can name them.
    pub properties: BTreeMap<String, Shape>,
}

impl Shape {
    /// What a structural schema says; the root of a resource has its kind, version and names in any case.
    pub fn of(schema: &Value, is_root: bool) -> Self {
        read(schema, is_root, "selfType", 0)
    }

    /// The type, for checking rules; `None` if no rule may look at it.
    pub fn declared(&self) -> Option<Type> {
        Some(match self {
            Self::Hidden => return None,
            Self::Any | Self::IntOrText => Type::Dyn,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Double => Type::Double,
            Self::Text => Type::Text,
            Self::Bytes => Type::Bytes,
            Self::Timestamp | Self::Date => Type::Timestamp,
            Self::Duration => Type::Duration,
            Self::List(items, _) => Type::list(items.declared()?),
            Self::Map(values) => Type::Map(Box::new(Type::Text), Box::new(values.declared()?)),
            Self::Object(shape) => Type::Object(Arc::clone(shape)),
        })
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn read(schema: &Value, is_root: bool, name: &str, depth: usize) -> Shape {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Shape::IntOrText;
    }
    if depth > DEPTH_MAX {
        return Shape::Hidden;
    }
    let below = |schema: &Value, part: &str| {
        let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
        read(schema, is_embedded, &format!("{name}.{part}"), depth + 1)
    };
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        "array" => match schema.get("items").map(|items| below(items, "@idx")) {
            Some(items) if items != Shape::Hidden => Shape::List(Arc::new(items), list_kind(schema)),
            Some(_) | None => Shape::Hidden,
        },
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => match below(values, "@elem") {
                Shape::Hidden => Shape::Hidden,
                values => Shape::Map(Arc::new(values)),
            },
            None => object(schema, is_root, name, &below),
        },
        "string" => match format {
            "byte" => Shape::Bytes,
            "duration" => Shape::Duration,
            "date" => Shape::Date,
            "date-time" => Shape::Timestamp,
            _ => Shape::Text,
        },
        "boolean" => Shape::Bool,
        "number" => Shape::Double,
        "integer" => Shape::Int,
        _ => Shape::Hidden,
    }
}

fn list_kind(schema: &Value) -> ListKind {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
            ListKind::Map(keys.filter_map(Value::as_str).map(ToOwned::to_owned).collect())
        }
        _ => ListKind::Atomic,
    }
}

fn object(schema: &Value, is_root: bool, name: &str, below: &dyn Fn(&Value, &str) -> Shape) -> Shape {
    let mut properties: BTreeMap<String, Shape> = BTreeMap::new();
    for (field, rules) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        properties.insert(field.clone(), below(rules, field));
    }
    if is_root && !has_identity(&properties) {
        let names = ["name", "generateName"].map(|name| (name.to_owned(), Shape::Text));
        properties.insert("metadata".to_owned(), known(format!("{name}.metadata"), BTreeMap::from(names)));
        for field in ["apiVersion", "kind"] {
            properties.insert(field.to_owned(), Shape::Text);
        }
    }
    known(name.to_owned(), properties)
}

/// Whether a schema says itself what rules may always look at.
fn has_identity(properties: &BTreeMap<String, Shape>) -> bool {
    let is_text = |fields: &BTreeMap<String, Shape>, name: &str| fields.get(name) == Some(&Shape::Text);
    let named = match properties.get("metadata") {
        Some(Shape::Object(shape)) => is_text(&shape.properties, "name") && is_text(&shape.properties, "generateName"),
        _ => false,
    };
    named && is_text(properties, "kind") && is_text(properties, "apiVersion")
}

fn known(name: String, properties: BTreeMap<String, Shape>) -> Shape {
    let fields = properties.iter().filter(|(_, shape)| **shape != Shape::Hidden);
    let fields = fields.filter_map(|(name, shape)| Some((escape(name)?, (name.clone(), shape.clone())))).collect();
    Shape::Object(Arc::new(ObjectShape { name, fields, properties }))
}

/// The name under which rules know a field; `None` if they cannot name it.
pub fn escape(name: &str) -> Option<String> {
    let is_known = |character: char| character.is_ascii_alphanumeric() || "_.-/".contains(character);
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.chars().all(is_known) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}
