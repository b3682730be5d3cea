//! Types from schemas: structs with their fields, maps and lists.

use std::sync::OnceLock;

use serde_json::Value;

use super::field_form::FieldForm;
use super::value_type::ValueType;

/// Named types, which are stored before any of them is looked up.
static NAMED: OnceLock<Vec<SchemaType>> = OnceLock::new();

/// Stores the named types, to which [`TypeRef::Named`] refers.
pub(super) fn store_named(types: Vec<SchemaType>) -> &'static [SchemaType] {
    NAMED.get_or_init(|| types)
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
    pub(super) format: String,
    /// Fields of a struct, sorted by name.
    pub(super) fields: Vec<Field>,
    /// Type of the values of a map or the items of a list.
    pub(super) element: Option<TypeRef>,
    pub(super) list_type: ListType,
    /// True if a struct may have undeclared fields.
    pub(super) keeps_unknown: bool,
    /// Defaults of a struct: field and value.
    pub(crate) defaults: Vec<(&'static str, Value)>,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(super) name: String,
    pub(super) type_ref: TypeRef,
    /// Default value in the schema.
    pub(super) default: Option<Value>,
    pub(super) form: FieldForm,
}

/// Reference to a type. Named types can be recursive and are referenced by index.
#[derive(Clone, Debug)]
pub(super) enum TypeRef {
    Named(usize),
    Inline(Box<SchemaType>),
}

impl TypeRef {
    fn get(&self) -> &SchemaType {
        match self {
            Self::Named(index) => &NAMED.get().expect("named types are stored before they are referenced")[*index],
            Self::Inline(inline) => inline,
        }
    }
}

/// Identification of the items of a list.
#[derive(Clone, Debug)]
pub(super) enum ListType {
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
