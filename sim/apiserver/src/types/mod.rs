//! The types of the built-in kinds, as a real server publishes them. Read once, shared by every server.

pub(crate) mod applied;
pub(crate) mod decode;
pub(crate) mod encode;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sindri_merge::Shape;

const TYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/types.json"));

/// Every type by its name, and by what it is the type of.
pub(crate) struct Types {
    schemas: Map<String, Value>,
    names: BTreeMap<(String, String, String), String>,
    shapes: BTreeMap<String, Arc<Shape>>,
}

/// The types, read at the first call.
pub(crate) fn types() -> &'static Types {
    static READ: OnceLock<Types> = OnceLock::new();
    READ.get_or_init(|| {
        let schemas: Map<String, Value> = serde_json::from_str(TYPES).unwrap_or_default();
        let mut names = BTreeMap::new();
        for (name, schema) in &schemas {
            let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in kinds.into_iter().flatten() {
                let part = |part: &str| kind.get(part).and_then(Value::as_str).unwrap_or_default().to_owned();
                names.insert((part("group"), part("version"), part("kind")), name.clone());
            }
        }
        let shapes = Shape::from_components(&schemas);
        Types { schemas, names, shapes }
    })
}

impl Types {
    /// The type of a kind, with its name.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Type<'_>> {
        let name = self.names.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))?;
        Some(Type { name, schema: self.schemas.get(name)? })
    }

    /// How values of a type merge.
    pub(crate) fn shape(&self, name: &str) -> Option<&Arc<Shape>> {
        self.shapes.get(name)
    }
}

/// A schema, and the name of the type that it is or refers to; the name is empty where there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
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

impl<'a> Type<'a> {
    /// The type that a schema describes, with its reference resolved.
    pub(crate) fn new(schema: &'a Value) -> Self {
        match schema.get("$ref").and_then(Value::as_str).and_then(|name| types().schemas.get_key_value(name)) {
            Some((name, schema)) => Type { name, schema },
            None => Type { name: "", schema },
        }
    }

    fn text(&self, key: &str) -> &'a str {
        self.schema.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The last part of its name: what the Go type is called.
    pub(crate) fn short_name(&self) -> &'a str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    pub(crate) fn sort(&self) -> Sort {
        match (self.text("type"), self.text("format")) {
            _ if self.short_name() == "Quantity" => Sort::Quantity,
            _ if self.short_name() == "Time" => Sort::Time,
            _ if self.short_name() == "MicroTime" => Sort::MicroTime,
            (_, "int-or-string") => Sort::IntOrString,
            _ if self.schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) => Sort::IntOrString,
            ("boolean", _) => Sort::Boolean,
            ("integer", _) => Sort::Integer,
            ("number", _) => Sort::Number,
            ("string", _) => Sort::Text,
            ("array", _) => Sort::List,
            ("object", _) if self.properties().is_some() => Sort::Struct,
            ("object", _) if self.values().is_some() => Sort::Map,
            _ => Sort::Any,
        }
    }

    pub(crate) fn properties(&self) -> Option<&'a Map<String, Value>> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The schema of a field, as the struct states it: with its own default and merge rules.
    pub(crate) fn property(&self, name: &str) -> Option<&'a Value> {
        self.properties()?.get(name)
    }

    /// The type of the values of a map.
    pub(crate) fn values(&self) -> Option<Type<'a>> {
        self.schema.get("additionalProperties").filter(|schema| schema.is_object()).map(Type::new)
    }

    /// The type of the elements of a list.
    pub(crate) fn items(&self) -> Option<Type<'a>> {
        self.schema.get("items").map(Type::new)
    }

    pub(crate) fn requires(&self, name: &str) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|field| field == name))
    }

    /// The type as Go writes it.
    pub(crate) fn go(&self) -> String {
        match self.sort() {
            Sort::Boolean => "bool".to_owned(),
            Sort::Integer => if self.text("format").is_empty() { "int64" } else { self.text("format") }.to_owned(),
            Sort::Number => "float64".to_owned(),
            Sort::Text if self.text("format") == "byte" => "[]uint8".to_owned(),
            Sort::Text => "string".to_owned(),
            Sort::List => format!("[]{}", self.items().map(|items| items.go()).unwrap_or_default()),
            Sort::Map if self.values().is_some_and(|values| values.sort() == Sort::Quantity) => {
                "v1.ResourceList".to_owned()
            }
            Sort::Map => format!("map[string]{}", self.values().map(|values| values.go()).unwrap_or_default()),
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
        assert_eq!((pod.short_name(), pod.sort()), ("Pod", Sort::Struct));
        let spec = Type::new(pod.property("spec").expect("recorded"));
        let containers = Type::new(spec.property("containers").expect("recorded"));
        assert_eq!(containers.go(), "[]v1.Container");
        assert!(spec.requires("containers"));
        assert!(types().shape(pod.name).is_some());
    }
}
