//! Types of values according to the schema of a CRD, and the names of its fields in rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// Reserved words of CEL.
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
/// Maximum nesting of a schema.
const DEPTH_MAX: usize = 64;

/// Type of a value according to its schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// No schema: JSON as it is.
    Any,
    /// Rules may compare the value for equality only.
    Hidden,
    /// An integer or a string.
    IntOrText,
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A number, which may be written as an integer.
    Double,
    /// A string.
    Text,
    /// Bytes in base64.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A date.
    Date,
    /// A duration.
    Duration,
    /// A list.
    List(Arc<Shape>, ListKind),
    /// A map with string keys.
    Map(Arc<Shape>),
    /// An object with known fields.
    Object(Arc<ObjectShape>),
}

/// Identity of the elements of a list (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// By index.
    Atomic,
    /// By value.
    Set,
    /// By the values of these fields.
    Map(Vec<String>),
}

/// Fields of an object.
#[derive(Debug, PartialEq)]
pub struct ObjectShape {
    /// Unique name of the type.
    pub name: String,
    /// Field name and shape by the name in rules.
    pub fields: BTreeMap<String, (String, Shape)>,
    /// Shape by the name in the object, including fields that rules cannot name.
    pub properties: BTreeMap<String, Shape>,
}

impl Shape {
    /// Converts a structural schema. The root of a resource always has `apiVersion`, `kind` and `metadata`.
    pub fn from_schema(schema: &Value, is_root: bool) -> Self {
        read(schema, is_root, "selfType", 0)
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

/// Returns true if the schema declares `apiVersion`, `kind` and the names of `metadata` itself.
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

/// Returns the name of a field in rules; `None` if they cannot name it.
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
