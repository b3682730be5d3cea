//! The types of the built-in kinds, as a real server publishes them. Parsed once, shared by every server.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sindri_merge::Shape;

use super::schema::{self, TypeNames};
use super::schema_type::{SchemaType, store_named};

const TYPES: &str = include_str!(concat!(env!("OUT_DIR"), "/types.json"));
/// Name of the type of every object's metadata.
pub(crate) const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// All types, by name and by kind.
pub(crate) struct TypeTable {
    all: &'static [SchemaType],
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
        TypeTable { all: store_named(all), names, kinds, shapes: Shape::from_components(&schemas) }
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

impl SchemaType {
    /// Returns the type that the schema of a custom resource describes.
    pub(crate) fn from_schema(schema: &Value) -> Self {
        schema::parse("", schema, &types().names)
    }
}

#[cfg(test)]
mod tests {
    use super::super::value_type::ValueType;
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
