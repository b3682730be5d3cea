//! The rules of custom resource definitions.

use serde_json::{Value, json};

use crate::error::FieldError;
use crate::pointer::{list, name, text};

pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let expected = format!("{}.{}", text(object, "/spec/names/plural"), text(object, "/spec/group"));
    if name(object) != expected {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name(object)), why));
    }
    for (field, pointer) in [
        ("spec.group", "/spec/group"),
        ("spec.names.plural", "/spec/names/plural"),
        ("spec.names.kind", "/spec/names/kind"),
    ] {
        if text(object, pointer).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    let scope = text(object, "/spec/scope");
    if !matches!(scope, "Cluster" | "Namespaced") {
        let supported = ["\"Cluster\"", "\"Namespaced\""].map(str::to_owned);
        errors.push(FieldError::unsupported("spec.scope", &json!(scope), &supported));
    }
    let versions = list(object, "/spec/versions");
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&json!(true))).count();
    if stored != 1 {
        let names: Vec<&str> = versions.iter().map(|version| text(version, "/name")).collect();
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &json!(names), why));
    }
    for (index, version) in versions.iter().enumerate() {
        if text(version, "/name").is_empty() {
            errors.push(FieldError::required(format!("spec.versions[{index}].name"), ""));
        }
        if !version.pointer("/schema/openAPIV3Schema").is_some_and(Value::is_object) {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, "schemas are required"));
        }
    }
    errors
}
