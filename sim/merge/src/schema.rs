//! Shapes out of schemas: those of custom resources, and the components of a real server's OpenAPI documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::shape::{ListKey, Shape, metadata};

impl Shape {
    /// The shape that a structural schema (`openAPIV3Schema`) describes, for a whole object.
    #[must_use]
    pub fn from_schema(schema: &Value) -> Self {
        let none = Map::new();
        let read = Reading { schemas: &none, done: BTreeMap::new(), open: Vec::new() }.read(schema);
        match Arc::unwrap_or_clone(read) {
            Self::Struct(mut fields) => {
                fields.insert("metadata".to_owned(), Arc::new(metadata()));
                Self::Struct(fields)
            }
            Self::Deduced | Self::Atomic | Self::Map(_) | Self::Set | Self::Keyed { .. } => Self::object(),
        }
    }

    /// The shapes of the `components.schemas` of OpenAPI documents, or of the `definitions` of older ones, by name. A type
    /// that holds itself is taken for unknown inside itself.
    #[must_use]
    pub fn from_components(schemas: &Map<String, Value>) -> BTreeMap<String, Arc<Self>> {
        let mut reading = Reading { schemas, done: BTreeMap::new(), open: Vec::new() };
        for name in schemas.keys() {
            reading.named(name);
        }
        reading.done
    }
}

struct Reading<'a> {
    schemas: &'a Map<String, Value>,
    done: BTreeMap<String, Arc<Shape>>,
    open: Vec<&'a str>,
}

impl<'a> Reading<'a> {
    fn named(&mut self, name: &str) -> Arc<Shape> {
        if let Some(shape) = self.done.get(name) {
            return shape.clone();
        }
        let found = self.schemas.get_key_value(name).filter(|(name, _)| !self.open.contains(&name.as_str()));
        let Some((name, schema)) = found else { return Arc::new(Shape::Deduced) };
        self.open.push(name);
        let shape = self.read(schema);
        self.open.pop();
        self.done.insert(name.clone(), shape.clone());
        shape
    }

    fn read(&mut self, schema: &'a Value) -> Arc<Shape> {
        if text(schema, "x-kubernetes-map-type") == "atomic" {
            return Arc::new(Shape::Atomic);
        }
        if let Some(name) = reference(schema) {
            return self.named(name);
        }
        match text(schema, "type") {
            "object" => self.object(schema),
            "array" => self.list(schema),
            _ => Arc::new(Shape::Deduced),
        }
    }

    fn object(&mut self, schema: &'a Value) -> Arc<Shape> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        Arc::new(match (properties, values) {
            (Some(properties), _) => {
                Shape::Struct(properties.iter().map(|(name, schema)| (name.clone(), self.read(schema))).collect())
            }
            (None, Some(values)) => Shape::Map(self.read(values)),
            (None, None) => Shape::Deduced,
        })
    }

    /// By what apply says of lists, and where it says nothing, by what strategic patches do.
    fn list(&mut self, schema: &'a Value) -> Arc<Shape> {
        let merges = text(schema, "x-kubernetes-patch-strategy").split(',').any(|strategy| strategy == "merge");
        let merge_key = Some(text(schema, "x-kubernetes-patch-merge-key")).filter(|key| !key.is_empty());
        match (text(schema, "x-kubernetes-list-type"), merge_key) {
            ("set", _) => Arc::new(Shape::Set),
            ("map", _) => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                self.keyed(schema, keys.into_iter().flatten().filter_map(Value::as_str).collect())
            }
            ("", Some(key)) if merges => self.keyed(schema, vec![key]),
            ("", None) if merges => Arc::new(Shape::Set),
            _ => Arc::new(Shape::Atomic),
        }
    }

    fn keyed(&mut self, schema: &'a Value, keys: Vec<&str>) -> Arc<Shape> {
        if keys.is_empty() {
            return Arc::new(Shape::Atomic);
        }
        let Some(items) = schema.get("items") else { return Arc::new(Shape::Atomic) };
        let resolved = reference(items).and_then(|name| self.schemas.get(name)).unwrap_or(items);
        let default = |name: &str| resolved.get("properties")?.get(name)?.get("default").cloned();
        let keys = keys.into_iter().map(|name| ListKey { default: default(name), name: name.to_owned() }).collect();
        Arc::new(Shape::Keyed { keys, item: self.read(items) })
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The name of the type that a schema refers to, also where it adds a default to it.
fn reference(schema: &Value) -> Option<&str> {
    let referring = if schema.get("$ref").is_some() { schema } else { schema.get("allOf")?.get(0)? };
    referring.get("$ref").and_then(Value::as_str)?.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_and_a_type_inside_itself_is_unknown() {
        let schemas = json!({
            "Tree": {"type": "object", "properties": {
                "leaves": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "side"],
                           "items": {"allOf": [{"$ref": "#/components/schemas/Leaf"}], "default": {}}},
                "tree": {"$ref": "#/components/schemas/Tree"},
                "tags": {"type": "array", "x-kubernetes-patch-strategy": "merge"},
            }},
            "Leaf": {"type": "object", "properties": {"id": {"type": "string"}, "side": {"default": "left"}}},
        });
        let shapes = Shape::from_components(schemas.as_object().expect("a map"));
        let Shape::Struct(fields) = &*shapes["Tree"] else { panic!("{:?}", shapes["Tree"]) };
        let Shape::Keyed { keys, item } = &*fields["leaves"] else { panic!("{:?}", fields["leaves"]) };
        assert_eq!(keys[1], ListKey { name: "side".to_owned(), default: Some(json!("left")) });
        assert_eq!(*item, shapes["Leaf"]);
        assert_eq!((&*fields["tree"], &*fields["tags"]), (&Shape::Deduced, &Shape::Set));
    }

    #[test]
    fn what_makes_no_sense_is_one_piece_or_unknown() {
        let list = |schema: Value| {
            let object = json!({"type": "object", "properties": {"list": schema}});
            let Shape::Struct(fields) = Shape::from_schema(&object) else { panic!("a type with a field") };
            Shape::clone(&fields["list"])
        };
        assert_eq!(list(json!({"type": "array", "x-kubernetes-list-type": "map"})), Shape::Atomic);
        assert_eq!(list(json!({"type": "array", "x-kubernetes-list-type": 3})), Shape::Atomic);
        assert_eq!(list(json!({"$ref": "#/nowhere"})), Shape::Deduced);
        assert_eq!(list(json!(7)), Shape::Deduced);
    }
}
