//! Reading types from schemas, once: references are resolved, and what each field is told by its struct is worked out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::encode::Form;
use super::{Field, Link, ListSort, Sort, Type};
use crate::strategy::defaults;

/// The types that schemas refer to by name: where each is, and what it is.
pub(super) type Names = BTreeMap<String, (usize, Sort)>;

/// The types of recorded schemas, in the order of their names.
pub(super) fn read_all(schemas: &Map<String, Value>) -> (Vec<Type>, Names) {
    let known = schemas.iter().enumerate();
    let names = known.map(|(index, (name, schema))| (name.clone(), (index, sort_of(short(name), schema)))).collect();
    let read = schemas.iter().map(|(name, schema)| read(name, schema, &names)).collect();
    (read, names)
}

/// The type that a schema describes itself, whatever it refers to.
pub(super) fn read(name: &str, schema: &Value, names: &Names) -> Type {
    let sort = sort_of(short(name), schema);
    let values = schema.get("additionalProperties").filter(|_| sort == Sort::Map);
    let element = values.or_else(|| schema.get("items").filter(|_| sort == Sort::List));
    Type {
        name: name.to_owned(),
        short_name: short(name).to_owned(),
        sort,
        format: text(schema, "format").to_owned(),
        fields: if sort == Sort::Struct { fields(short(name), schema, names) } else { Vec::new() },
        element: element.map(|schema| link(schema, names).0),
        list: list_sort(schema),
        keeps_unknown: is_set(schema, "x-kubernetes-preserve-unknown-fields"),
        defaults: defaults::of_struct(short(name)),
    }
}

fn fields(holder: &str, schema: &Value, names: &Names) -> Vec<Field> {
    let required: Vec<&str> = texts(schema, "required");
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields = Vec::new();
    // They come sorted by name, which is how they are looked up.
    for (name, property) in properties.into_iter().flatten() {
        let (of, sort) = link(property, names);
        let default = property.get("default").cloned();
        let required = required.contains(&name.as_str());
        let form = Form::new(holder, name, sort, default.as_ref(), required);
        fields.push(Field { name: name.clone(), of, default, form });
    }
    fields
}

/// The type that a schema describes or refers to, and what it is.
fn link(schema: &Value, names: &Names) -> (Link, Sort) {
    match schema.get("$ref").and_then(Value::as_str).and_then(|name| names.get(name)) {
        Some((index, sort)) => (Link::Named(*index), *sort),
        None => {
            let own = read("", schema, names);
            let sort = own.sort;
            (Link::Own(Box::new(own)), sort)
        }
    }
}

fn sort_of(short_name: &str, schema: &Value) -> Sort {
    match (text(schema, "type"), text(schema, "format")) {
        _ if short_name == "Quantity" => Sort::Quantity,
        _ if short_name == "Time" => Sort::Time,
        _ if short_name == "MicroTime" => Sort::MicroTime,
        (_, "int-or-string") => Sort::IntOrString,
        _ if is_set(schema, "x-kubernetes-int-or-string") => Sort::IntOrString,
        ("boolean", _) => Sort::Boolean,
        ("integer", _) => Sort::Integer,
        ("number", _) => Sort::Number,
        ("string", _) => Sort::Text,
        ("array", _) => Sort::List,
        ("object", _) if schema.get("properties").is_some_and(Value::is_object) => Sort::Struct,
        ("object", _) if schema.get("additionalProperties").is_some_and(Value::is_object) => Sort::Map,
        _ => Sort::Any,
    }
}

fn list_sort(schema: &Value) -> ListSort {
    match text(schema, "x-kubernetes-list-type") {
        "set" => ListSort::Set,
        "map" => {
            let mut keys = texts(schema, "x-kubernetes-list-map-keys");
            keys.sort_unstable();
            ListSort::Keyed(keys.into_iter().map(str::to_owned).collect())
        }
        _ => ListSort::Plain,
    }
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(schema: &'a Value, key: &str) -> Vec<&'a str> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_set(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}
