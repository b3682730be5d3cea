//! Schemas of custom resources and of their lists, as OpenAPI documents publish them.

use serde_json::{Map, Value, json};

use super::dialect::{Dialect, model_name};
use crate::registry::resource::Target;

/// Built-in list that has the fields of every list.
const LIST: &str = "io.k8s.api.apps.v1.DeploymentList";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
/// Fields of a schema that are not published.
const UNPUBLISHED: [&str; 2] = ["example", "externalDocs"];
/// Combinations of schemas, which version 2 does not have.
const COMBINATIONS: [&str; 4] = ["allOf", "anyOf", "not", "oneOf"];

/// Writes the schemas of a custom resource and of its list. `known` are the schemas of built-in kinds.
pub(super) fn write_schemas(target: &Target, dialect: Dialect, known: &Value, schemas: &mut Map<String, Value>) {
    let resource = &target.resource;
    let writer = SchemaWriter { dialect, known };
    let marked = |mut schema: Value, kind: &str| {
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": resource.group, "kind": kind, "version": target.version.name}]);
        schema
    };
    let own = writer.object_schema(target.version.schema.as_ref());
    schemas.insert(model_name(target, &resource.kind), marked(own, &resource.kind));
    let list = writer.list_schema(target);
    schemas.insert(model_name(target, &resource.list_kind), marked(list, &resource.list_kind));
}

struct SchemaWriter<'a> {
    dialect: Dialect,
    known: &'a Value,
}

impl SchemaWriter<'_> {
    fn reference(&self, name: &str, description: &str) -> Value {
        let reference = json!(format!("{}{name}", self.dialect.reference()));
        match self.dialect {
            Dialect::V2 => json!({"$ref": reference, "description": description}),
            Dialect::V3 => json!({"allOf": [{"$ref": reference}], "description": description}),
        }
    }

    fn object_meta(&self) -> Value {
        self.reference(OBJECT_META, &format!("Standard object's metadata. More info: {CONVENTIONS}#metadata"))
    }

    /// Adds `apiVersion` and `kind`, as every kind has them.
    fn add_type(&self, schema: &mut Value) {
        for field in ["apiVersion", "kind"] {
            schema["properties"][field] = self.known[LIST]["properties"][field].clone();
        }
    }

    fn object_schema(&self, declared: Option<&Value>) -> Value {
        let bare = json!({"type": "object"});
        let Some(declared) = declared else { return bare };
        if self.dialect == Dialect::V2 && declared.get(PRESERVES) == Some(&json!(true)) {
            return bare;
        }
        let mut schema = declared.clone();
        self.adapt(&mut schema);
        schema["properties"]["metadata"] = self.object_meta();
        self.add_type(&mut schema);
        schema
    }

    fn list_schema(&self, target: &Target) -> Value {
        let resource = &target.resource;
        let item = json!({"$ref": format!("{}{}", self.dialect.reference(), model_name(target, &resource.kind))});
        let mut schema = json!({
            "type": "object", "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
            "required": ["items"],
            "properties": {
                "items": {
                    "type": "array", "items": item,
                    "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural),
                },
                "metadata": self.reference(
                    LIST_META, &format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds")
                ),
            },
        });
        self.add_type(&mut schema);
        schema
    }

    /// Adapts a declared schema and those inside it.
    fn adapt(&self, schema: &mut Value) {
        let Some(fields) = schema.as_object_mut() else { return };
        let is_published = |name: &str, value: &Value| match name {
            "additionalProperties" | "default" => true,
            name => !UNPUBLISHED.contains(&name) && *value != json!(false),
        };
        fields.retain(|name, value| is_published(name, value));
        match self.dialect {
            Dialect::V2 => simplify(fields),
            Dialect::V3 => unfold(fields),
        }
        for (_, property) in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            self.adapt(property);
        }
        for inner in ["additionalProperties", "items"] {
            if let Some(inner) = fields.get_mut(inner).filter(|inner| inner.is_object()) {
                self.adapt(inner);
            }
        }
        let is_open = self.dialect == Dialect::V2 && fields.get(PRESERVES) == Some(&json!(true));
        if fields.get("x-kubernetes-embedded-resource") == Some(&json!(true)) && !is_open {
            self.add_embedded(schema);
        }
    }

    /// Adds the fields of every object to a schema of an embedded one.
    fn add_embedded(&self, schema: &mut Value) {
        self.add_type(schema);
        let versions = "apiVersion defines the versioned schema of this representation of an object.";
        let kinds = "kind is a string value representing the type of this object. In CamelCase.";
        schema["properties"]["apiVersion"]["description"] =
            json!(format!("{versions} More info: {CONVENTIONS}#resources"));
        schema["properties"]["kind"]["description"] = json!(format!("{kinds} More info: {CONVENTIONS}#types-kinds"));
        schema["properties"]["metadata"] = self.object_meta();
        let mut required = schema["required"].as_array().cloned().unwrap_or_default();
        for field in ["kind", "apiVersion"] {
            if !required.contains(&json!(field)) {
                required.push(json!(field));
            }
        }
        schema["required"] = json!(required);
    }
}

/// Removes what version 2 does not have, and what its clients do not understand.
fn simplify(fields: &mut Map<String, Value>) {
    for combination in COMBINATIONS {
        fields.remove(combination);
    }
    let nullable_fields: Vec<String> = fields
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, property)| property.get("nullable") == Some(&json!(true)))
        .map(|(name, _)| name.clone())
        .collect();
    let is_nullable = fields.remove("nullable") == Some(json!(true));
    let preserves = fields.get(PRESERVES) == Some(&json!(true));
    if is_nullable || preserves {
        fields.remove("items");
        fields.remove("properties");
    }
    let is_bare_array = fields.get("type") == Some(&json!("array")) && !fields.contains_key("items");
    let is_open_object = preserves && fields.get("type") == Some(&json!("object"));
    if is_nullable || is_bare_array || is_open_object {
        fields.remove("type");
    }
    let has_nullable_values =
        fields.get("additionalProperties").and_then(|values| values.get("nullable")) == Some(&json!(true));
    if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
        required
            .retain(|name| !has_nullable_values && !nullable_fields.iter().any(|nullable| *name == nullable.as_str()));
        if required.is_empty() {
            fields.remove("required");
        }
    }
}

/// Writes the types of an integer or string explicitly.
fn unfold(fields: &mut Map<String, Value>) {
    let is_either = fields.get("x-kubernetes-int-or-string") == Some(&json!(true));
    if is_either && !fields.contains_key("anyOf") && !fields.contains_key("allOf") {
        fields.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
}
