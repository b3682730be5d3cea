//! How the values of each type merge, from what its schema says of lists and maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use sindri_merge::{ListKey, Shape};

/// The shape of every type. A type that holds itself is taken for unknown inside itself.
pub(super) fn all(schemas: &Map<String, Value>) -> BTreeMap<String, Arc<Shape>> {
    let mut reading = Reading { schemas, done: BTreeMap::new(), open: Vec::new() };
    for name in schemas.keys() {
        reading.named(name);
    }
    reading.done
}

struct Reading<'a> {
    schemas: &'a Map<String, Value>,
    done: BTreeMap<String, Arc<Shape>>,
    open: Vec<String>,
}

impl Reading<'_> {
    fn named(&mut self, name: &str) -> Arc<Shape> {
        if let Some(shape) = self.done.get(name) {
            return shape.clone();
        }
        let schemas = self.schemas;
        let Some(schema) = schemas.get(name).filter(|_| !self.open.iter().any(|open| open == name)) else {
            return Arc::new(Shape::Deduced);
        };
        self.open.push(name.to_owned());
        let shape = self.read(schema);
        self.open.pop();
        self.done.insert(name.to_owned(), shape.clone());
        shape
    }

    fn read(&mut self, schema: &Value) -> Arc<Shape> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("x-kubernetes-map-type") == "atomic" {
            return Arc::new(Shape::Atomic);
        }
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return self.named(name);
        }
        match text("type") {
            "object" => self.object(schema),
            "array" => self.list(schema),
            _ => Arc::new(Shape::Deduced),
        }
    }

    fn object(&mut self, schema: &Value) -> Arc<Shape> {
        let properties = schema.get("properties").and_then(Value::as_object);
        match (properties, schema.get("additionalProperties").filter(|values| values.is_object())) {
            (Some(properties), _) => {
                let fields = properties.iter().map(|(name, schema)| (name.clone(), self.read(schema))).collect();
                Arc::new(Shape::Struct(fields))
            }
            (None, Some(values)) => Arc::new(Shape::Map(self.read(values))),
            (None, None) => Arc::new(Shape::Deduced),
        }
    }

    fn list(&mut self, schema: &Value) -> Arc<Shape> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let merges = text("x-kubernetes-patch-strategy").split(',').any(|strategy| strategy == "merge");
        let merge_key = Some(text("x-kubernetes-patch-merge-key")).filter(|key| !key.is_empty());
        match (text("x-kubernetes-list-type"), merge_key) {
            ("set", _) => Arc::new(Shape::Set),
            ("map", _) => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
                self.keyed(schema, keys)
            }
            ("", Some(key)) if merges => self.keyed(schema, vec![key.to_owned()]),
            ("", None) if merges => Arc::new(Shape::Set),
            _ => Arc::new(Shape::Atomic),
        }
    }

    fn keyed(&mut self, schema: &Value, keys: Vec<String>) -> Arc<Shape> {
        let items = schema.get("items").cloned().unwrap_or_default();
        let resolved = items.get("$ref").and_then(Value::as_str).and_then(|name| self.schemas.get(name));
        let properties = resolved.unwrap_or(&items).get("properties").cloned().unwrap_or_default();
        let default = |name: &str| properties.get(name).and_then(|field| field.get("default")).cloned();
        let keys = keys.into_iter().map(|name| ListKey { default: default(&name), name }).collect();
        Arc::new(Shape::Keyed { keys, item: self.read(&items) })
    }
}
