//! The types of the built-in kinds, as a real server publishes them. Read once, shared by every server.

pub(crate) mod applied;
pub(crate) mod decode;
pub(crate) mod encode;
mod schema;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sindri_merge::Shape;

use encode::Form;
use schema::Names;

const TYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/types.json"));
/// The type of the metadata of every object.
pub(crate) const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Every type by its name, and by what it is the type of.
pub(crate) struct Types {
    read: Vec<Type>,
    names: Names,
    kinds: BTreeMap<(String, String, String), usize>,
    shapes: BTreeMap<String, Arc<Shape>>,
}

/// The types, read at the first call.
pub(crate) fn types() -> &'static Types {
    static READ: OnceLock<Types> = OnceLock::new();
    READ.get_or_init(|| {
        let schemas: Map<String, Value> = serde_json::from_str(TYPES).unwrap_or_default();
        let mut kinds = BTreeMap::new();
        for (index, schema) in schemas.values().enumerate() {
            let of = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in of.into_iter().flatten() {
                let part = |part: &str| kind.get(part).and_then(Value::as_str).unwrap_or_default().to_owned();
                kinds.insert((part("group"), part("version"), part("kind")), index);
            }
        }
        let (read, names) = schema::read_all(&schemas);
        Types { read, names, kinds, shapes: Shape::from_components(&schemas) }
    })
}

impl Types {
    /// The type of a kind.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Type> {
        let index = self.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))?;
        self.read.get(*index)
    }

    /// The type of the metadata of every object.
    pub(crate) fn metadata(&self) -> Option<&Type> {
        self.names.get(METADATA).and_then(|(index, _)| self.read.get(*index))
    }

    /// How values of a type merge.
    pub(crate) fn shape(&self, name: &str) -> Option<&Arc<Shape>> {
        self.shapes.get(name)
    }
}

/// A type: what its values are, and what is in them.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    /// Empty where there is none.
    pub(crate) name: String,
    /// The last part of its name: what the Go type is called.
    pub(crate) short_name: String,
    pub(crate) sort: Sort,
    /// What sort of integer or text it is, such as `int32`.
    format: String,
    /// The fields of a struct, in the order of their names.
    fields: Vec<Field>,
    /// The type of what is in a map or a list.
    element: Option<Link>,
    list: ListSort,
    /// Whether a struct may have fields that it does not name.
    keeps_unknown: bool,
    /// What a struct is given when nothing is said: field and value.
    pub(crate) defaults: Vec<(&'static str, Value)>,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: String,
    of: Link,
    /// What the document says that it is when nothing is said.
    default: Option<Value>,
    form: Form,
}

/// A type inside another. Those with names can hold themselves, and are known by their place.
#[derive(Clone, Debug)]
enum Link {
    Named(usize),
    Own(Box<Type>),
}

impl Link {
    fn get(&self) -> &Type {
        match self {
            Self::Named(index) => &types().read[*index],
            Self::Own(own) => own,
        }
    }
}

/// What the values of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Boolean,
    Integer,
    Number,
    Text,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    /// Fields with names.
    Struct,
    /// Any names, values of one type.
    Map,
    List,
    /// Anything.
    Any,
}

/// How the elements of a list are told from each other.
#[derive(Clone, Debug)]
enum ListSort {
    /// By their places.
    Plain,
    /// By what they are.
    Set,
    /// By these fields.
    Keyed(Vec<String>),
}

impl Field {
    pub(crate) fn of(&self) -> &Type {
        self.of.get()
    }
}

impl Type {
    /// The type that the schema of a custom resource describes.
    pub(crate) fn of_schema(schema: &Value) -> Self {
        schema::read("", schema, &types().names)
    }

    /// A field by its name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let found = self.fields.binary_search_by(|field| field.name.as_str().cmp(name));
        found.ok().map(|index| &self.fields[index])
    }

    /// The type of the values of a map, or of the elements of a list.
    pub(crate) fn element(&self) -> Option<&Type> {
        self.element.as_ref().map(Link::get)
    }

    /// The type as Go writes it.
    pub(crate) fn go(&self) -> String {
        let element = || self.element().map(Self::go).unwrap_or_default();
        match self.sort {
            Sort::Boolean => "bool".to_owned(),
            Sort::Integer => if self.format.is_empty() { "int64" } else { &self.format }.to_owned(),
            Sort::Number => "float64".to_owned(),
            Sort::Text if self.format == "byte" => "[]uint8".to_owned(),
            Sort::Text => "string".to_owned(),
            Sort::List => format!("[]{}", element()),
            Sort::Map if self.element().is_some_and(|values| values.sort == Sort::Quantity) => {
                "v1.ResourceList".to_owned()
            }
            Sort::Map => format!("map[string]{}", element()),
            Sort::Struct | Sort::Any | Sort::IntOrString | Sort::Quantity | Sort::Time | Sort::MicroTime => {
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
    fn every_kind_that_is_served_has_a_type_and_a_shape() {
        let pod = types().of_kind("", "v1", "Pod").expect("recorded");
        assert_eq!((pod.short_name.as_str(), pod.sort), ("Pod", Sort::Struct));
        let spec = pod.field("spec").expect("recorded").of();
        let containers = spec.field("containers").expect("recorded").of();
        assert_eq!(containers.go(), "[]v1.Container");
        assert!(types().shape(&pod.name).is_some());
    }

    #[test]
    fn a_type_may_hold_itself_and_what_is_in_another_has_no_name() {
        let rules = types().read.iter().find(|of| of.short_name == "JSONSchemaProps").expect("recorded");
        let inside = rules.field("not").expect("recorded").of();
        assert_eq!(inside.name, rules.name);
        let names = rules.field("required").expect("recorded").of();
        assert_eq!((names.name.as_str(), names.go()), ("", "[]string".to_owned()));
        assert!(rules.field("nothing").is_none());
    }

    #[test]
    fn the_schema_of_a_custom_resource_refers_to_recorded_types() {
        let schema = serde_json::json!({"type": "object", "properties": {"metadata": {"$ref": METADATA}}});
        let of = Type::of_schema(&schema);
        assert_eq!(of.field("metadata").expect("named").of().short_name, "ObjectMeta");
    }
}
