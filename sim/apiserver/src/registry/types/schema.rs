//! Parses types from schemas: resolves references and computes the serialization rules of each field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::field_form::FieldForm;
use super::schema_type::{Field, ListType, SchemaType, TypeRef};
use super::struct_defaults::struct_defaults;
use super::value_type::ValueType;

/// Named types: index and value type of each.
pub(super) type TypeNames = BTreeMap<String, (usize, ValueType)>;

/// Parses all recorded schemas; the types are sorted by name.
pub(super) fn parse_all(schemas: &Map<String, Value>) -> (Vec<SchemaType>, TypeNames) {
    let indexed = schemas.iter().enumerate();
    let names = indexed
        .map(|(index, (name, schema))| (name.clone(), (index, value_type_of(short_name(name), schema))))
        .collect();
    let types = schemas.iter().map(|(name, schema)| parse(name, schema, &names)).collect();
    (types, names)
}

/// Parses a schema, without following a reference of the schema itself.
pub(super) fn parse(name: &str, schema: &Value, names: &TypeNames) -> SchemaType {
    let value_type = value_type_of(short_name(name), schema);
    let values = schema.get("additionalProperties").filter(|_| value_type == ValueType::Map);
    let element = values.or_else(|| schema.get("items").filter(|_| value_type == ValueType::List));
    SchemaType {
        name: name.to_owned(),
        short_name: short_name(name).to_owned(),
        value_type,
        format: str_field(schema, "format").to_owned(),
        fields: if value_type == ValueType::Struct {
            parse_fields(short_name(name), schema, names)
        } else {
            Vec::new()
        },
        element: element.map(|schema| resolve(schema, names).0),
        list_type: list_type_of(schema),
        keeps_unknown: is_set(schema, "x-kubernetes-preserve-unknown-fields"),
        defaults: struct_defaults(short_name(name)),
    }
}

fn parse_fields(parent: &str, schema: &Value, names: &TypeNames) -> Vec<Field> {
    let required: Vec<&str> = str_list(schema, "required");
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields = Vec::new();
    // Sorted by name, as the lookup requires.
    for (name, property) in properties.into_iter().flatten() {
        let (type_ref, value_type) = resolve(property, names);
        let default = property.get("default").cloned();
        let required = required.contains(&name.as_str());
        let form = FieldForm::new(parent, name, value_type, default.as_ref(), required);
        fields.push(Field { name: name.clone(), type_ref, default, form });
    }
    fields
}

/// Returns the type that a schema describes or refers to, and its value type.
fn resolve(schema: &Value, names: &TypeNames) -> (TypeRef, ValueType) {
    match schema.get("$ref").and_then(Value::as_str).and_then(|name| names.get(name)) {
        Some((index, value_type)) => (TypeRef::Named(*index), *value_type),
        None => {
            let inline = parse("", schema, names);
            let value_type = inline.value_type;
            (TypeRef::Inline(Box::new(inline)), value_type)
        }
    }
}

fn value_type_of(short_name: &str, schema: &Value) -> ValueType {
    match (str_field(schema, "type"), str_field(schema, "format")) {
        _ if short_name == "Quantity" => ValueType::Quantity,
        _ if short_name == "Time" => ValueType::Time,
        _ if short_name == "MicroTime" => ValueType::MicroTime,
        (_, "int-or-string") => ValueType::IntOrString,
        _ if is_set(schema, "x-kubernetes-int-or-string") => ValueType::IntOrString,
        ("boolean", _) => ValueType::Boolean,
        ("integer", _) => ValueType::Integer,
        ("number", _) => ValueType::Number,
        ("string", _) => ValueType::String,
        ("array", _) => ValueType::List,
        ("object", _) if schema.get("properties").is_some_and(Value::is_object) => ValueType::Struct,
        ("object", _) if schema.get("additionalProperties").is_some_and(Value::is_object) => ValueType::Map,
        _ => ValueType::Any,
    }
}

fn list_type_of(schema: &Value) -> ListType {
    match str_field(schema, "x-kubernetes-list-type") {
        "set" => ListType::Set,
        "map" => {
            let mut keys = str_list(schema, "x-kubernetes-list-map-keys");
            keys.sort_unstable();
            ListType::Keyed(keys.into_iter().map(str::to_owned).collect())
        }
        _ => ListType::Atomic,
    }
}

fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

fn str_field<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn str_list<'a>(schema: &'a Value, key: &str) -> Vec<&'a str> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_set(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}
