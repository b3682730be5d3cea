//! The types of the built-in kinds, as a real server publishes them. Parsed once, shared by every server.

pub(crate) mod decode;
pub(crate) mod encode;
mod schema;
pub(crate) mod typed_merge;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sindri_merge::Shape;

use encode::FieldForm;
use schema::TypeNames;

const TYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/types.json"));
/// Name of the type of every object's metadata.
pub(crate) const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All types, by name and by kind.
pub(crate) struct TypeTable {
    all: Vec<SchemaType>,
    names: TypeNames,
    kinds: BTreeMap<(String, String, String), usize>,
    shapes: BTreeMap<String, Arc<Shape>>,
}

/// Returns all types; parses them at the first call.
pub(crate) fn types() -> &'static TypeTable {
    static PARSED: OnceLock<TypeTable> = OnceLock::new();
    PARSED.get_or_init(|| {
        let schemas: Map<String, Value> = serde_json::from_str(TYPES).unwrap_or_default();
        let mut kinds = BTreeMap::new();
        for (index, schema) in schemas.values().enumerate() {
            let schema_kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in schema_kinds.into_iter().flatten() {
                let part = |part: &str| kind.get(part).and_then(Value::as_str).unwrap_or_default().to_owned();
                kinds.insert((part("group"), part("version"), part("kind")), index);
            }
        }
        let (all, names) = schema::parse_all(&schemas);
        TypeTable { all, names, kinds, shapes: Shape::from_components(&schemas) }
    })
}

impl TypeTable {
    /// Returns the type of a kind.
    pub(crate) fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&SchemaType> {
        let index = self.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))?;
        self.all.get(*index)
    }

    /// Returns the type of every object's metadata.
    pub(crate) fn metadata(&self) -> Option<&SchemaType> {
        self.names.get(METADATA).and_then(|(index, _)| self.all.get(*index))
    }

    /// Returns the merge behaviour of a type's values.
    pub(crate) fn shape(&self, name: &str) -> Option<&Arc<Shape>> {
        self.shapes.get(name)
    }
}

/// A type from a schema: the type of its values and of their content.
#[derive(Clone, Debug)]
pub(crate) struct SchemaType {
    /// Full name; empty for an inline type.
    pub(crate) name: String,
    /// Last part of the name: the name of the Go type.
    pub(crate) short_name: String,
    pub(crate) value_type: ValueType,
    /// Format of an integer or a string, such as `int32`.
    format: String,
    /// Fields of a struct, sorted by name.
    fields: Vec<Field>,
    /// Type of the values of a map or the items of a list.
    element: Option<TypeRef>,
    list_type: ListType,
    /// True if a struct may have undeclared fields.
    keeps_unknown: bool,
    /// Defaults of a struct: field and value.
    pub(crate) defaults: Vec<(&'static str, Value)>,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: String,
    type_ref: TypeRef,
    /// Default value in the schema.
    default: Option<Value>,
    form: FieldForm,
}

/// Reference to a type. Named types can be recursive and are referenced by index.
#[derive(Clone, Debug)]
enum TypeRef {
    Named(usize),
    Inline(Box<SchemaType>),
}

impl TypeRef {
    fn get(&self) -> &SchemaType {
        match self {
            Self::Named(index) => &types().all[*index],
            Self::Inline(inline) => inline,
        }
    }
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Boolean,
    Integer,
    Number,
    String,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    /// Declared fields.
    Struct,
    /// Arbitrary keys, values of one type.
    Map,
    List,
    /// Any JSON value.
    Any,
}

/// Identification of the items of a list.
#[derive(Clone, Debug)]
enum ListType {
    /// By index.
    Atomic,
    /// By value.
    Set,
    /// By the values of these fields.
    Keyed(Vec<String>),
}

impl Field {
    pub(crate) fn field_type(&self) -> &SchemaType {
        self.type_ref.get()
    }
}

impl SchemaType {
    /// Returns the type that the schema of a custom resource describes.
    pub(crate) fn from_schema(schema: &Value) -> Self {
        schema::parse("", schema, &types().names)
    }

    /// Returns a field by name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let index = self.fields.binary_search_by(|field| field.name.as_str().cmp(name));
        index.ok().map(|index| &self.fields[index])
    }

    /// Returns the type of the values of a map or of the items of a list.
    pub(crate) fn element(&self) -> Option<&SchemaType> {
        self.element.as_ref().map(TypeRef::get)
    }

    /// Returns the name of the type in Go.
    pub(crate) fn go_name(&self) -> String {
        let element = || self.element().map(Self::go_name).unwrap_or_default();
        match self.value_type {
            ValueType::Boolean => "bool".to_owned(),
            ValueType::Integer => if self.format.is_empty() { "int64" } else { &self.format }.to_owned(),
            ValueType::Number => "float64".to_owned(),
            ValueType::String if self.format == "byte" => "[]uint8".to_owned(),
            ValueType::String => "string".to_owned(),
            ValueType::List => format!("[]{}", element()),
            ValueType::Map if self.element().is_some_and(|values| values.value_type == ValueType::Quantity) => {
                "v1.ResourceList".to_owned()
            }
            ValueType::Map => format!("map[string]{}", element()),
            ValueType::Struct
            | ValueType::Any
            | ValueType::IntOrString
            | ValueType::Quantity
            | ValueType::Time
            | ValueType::MicroTime => {
                let mut parts = self.name.rsplitn(3, '.');
                let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                format!("{package}.{name}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_served_kind_has_a_type_and_a_shape() {
        let pod = types().find_kind("", "v1", "Pod").expect("recorded");
        assert_eq!((pod.short_name.as_str(), pod.value_type), ("Pod", ValueType::Struct));
        let spec = pod.field("spec").expect("recorded").field_type();
        let containers = spec.field("containers").expect("recorded").field_type();
        assert_eq!(containers.go_name(), "[]v1.Container");
        assert!(types().shape(&pod.name).is_some());
    }

    #[test]
    fn a_type_may_be_recursive_and_an_inline_type_has_no_name() {
        let rules =
            types().all.iter().find(|schema_type| schema_type.short_name == "JSONSchemaProps").expect("recorded");
        let nested = rules.field("not").expect("recorded").field_type();
        assert_eq!(nested.name, rules.name);
        let names = rules.field("required").expect("recorded").field_type();
        assert_eq!((names.name.as_str(), names.go_name()), ("", "[]string".to_owned()));
        assert!(rules.field("unknown").is_none());
    }

    #[test]
    fn the_schema_of_a_custom_resource_refers_to_recorded_types() {
        let schema = serde_json::json!({"type": "object", "properties": {"metadata": {"$ref": METADATA}}});
        let schema_type = SchemaType::from_schema(&schema);
        assert_eq!(schema_type.field("metadata").expect("named").field_type().short_name, "ObjectMeta");
    }
}
