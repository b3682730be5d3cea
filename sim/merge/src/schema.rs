//! Reads shapes from schemas: the structural schemas of CRDs, and the components of a real server's OpenAPI documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::shape::{ListKey, Shape, metadata_shape};

impl Shape {
    /// Returns the shape of a whole object with this structural schema (`openAPIV3Schema`).
    #[must_use]
    pub fn from_schema(schema: &Value) -> Self {
        let none = Map::new();
        let read = SchemaReader { schemas: &none, shapes: BTreeMap::new(), open: Vec::new() }.read(schema);
        match Arc::unwrap_or_clone(read) {
            Self::Struct(mut fields) => {
                fields.insert("metadata".to_owned(), Arc::new(metadata_shape()));
                Self::Struct(fields)
            }
            Self::Deduced | Self::Atomic | Self::Map(_) | Self::Set | Self::Keyed { .. } => Self::object(),
        }
    }

    /// Returns the shapes of the `components.schemas` of OpenAPI documents, or of the `definitions` of older ones, by name.
    /// A recursive type is [`Shape::Deduced`] inside itself.
    #[must_use]
    pub fn from_components(schemas: &Map<String, Value>) -> BTreeMap<String, Arc<Self>> {
        let mut reader = SchemaReader { schemas, shapes: BTreeMap::new(), open: Vec::new() };
        for name in schemas.keys() {
            reader.read_named(name);
        }
        reader.shapes
    }
}

/// Converts named schemas to shapes. `open` holds the names of the types being converted, to detect recursion.
struct SchemaReader<'a> {
    schemas: &'a Map<String, Value>,
    shapes: BTreeMap<String, Arc<Shape>>,
    open: Vec<&'a str>,
}

impl<'a> SchemaReader<'a> {
    fn read_named(&mut self, name: &str) -> Arc<Shape> {
        if let Some(shape) = self.shapes.get(name) {
            return shape.clone();
        }
        let closed = self.schemas.get_key_value(name).filter(|(name, _)| !self.open.contains(&name.as_str()));
        let Some((name, schema)) = closed else { return Arc::new(Shape::Deduced) };
        self.open.push(name);
        let shape = self.read(schema);
        self.open.pop();
        self.shapes.insert(name.clone(), shape.clone());
        shape
    }

    fn read(&mut self, schema: &'a Value) -> Arc<Shape> {
        if str_field(schema, "x-kubernetes-map-type") == "atomic" {
            return Arc::new(Shape::Atomic);
        }
        if let Some(name) = reference(schema) {
            return self.read_named(name);
        }
        match str_field(schema, "type") {
            "object" => self.read_object(schema),
            "array" => self.read_list(schema),
            _ => Arc::new(Shape::Deduced),
        }
    }

    fn read_object(&mut self, schema: &'a Value) -> Arc<Shape> {
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

    /// Uses the list type of server-side apply, and if there is none, the strategy of strategic merge patch.
    fn read_list(&mut self, schema: &'a Value) -> Arc<Shape> {
        let merges = str_field(schema, "x-kubernetes-patch-strategy").split(',').any(|strategy| strategy == "merge");
        let merge_key = Some(str_field(schema, "x-kubernetes-patch-merge-key")).filter(|key| !key.is_empty());
        match (str_field(schema, "x-kubernetes-list-type"), merge_key) {
            ("set", _) => Arc::new(Shape::Set),
            ("map", _) => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                self.read_keyed_list(schema, keys.into_iter().flatten().filter_map(Value::as_str).collect())
            }
            ("", Some(key)) if merges => self.read_keyed_list(schema, vec![key]),
            ("", None) if merges => Arc::new(Shape::Set),
            _ => Arc::new(Shape::Atomic),
        }
    }

    fn read_keyed_list(&mut self, schema: &'a Value, keys: Vec<&str>) -> Arc<Shape> {
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

fn str_field<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the name of the type that a schema refers to, also if the reference is wrapped in `allOf` to add a default.
fn reference(schema: &Value) -> Option<&str> {
    let referring = if schema.get("$ref").is_some() { schema } else { schema.get("allOf")?.get(0)? };
    referring.get("$ref").and_then(Value::as_str)?.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_resolved_and_a_recursive_type_is_deduced_inside_itself() {
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
    fn an_invalid_list_schema_is_atomic_and_any_other_invalid_schema_is_deduced() {
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
