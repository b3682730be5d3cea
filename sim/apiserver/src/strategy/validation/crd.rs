//! Validates CustomResourceDefinitions.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{list, name, text};
use crate::schema::crd_schema;

pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let expected = format!("{}.{}", text(object, "/spec/names/plural"), text(object, "/spec/group"));
    if name(object) != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &json!(name(object)), detail));
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
        let formatted: Vec<String> = versions.iter().map(format_version).collect();
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid_text("spec.versions", &format!("[{}]", formatted.join(",")), detail));
        if stored == 0 {
            let detail = "must have at least one stored version";
            errors.push(FieldError::invalid("status.storedVersions", &Value::Null, detail));
        }
    }
    errors.extend(check_protected_group(object));
    errors.extend(check_stored_versions(object));
    for (index, version) in versions.iter().enumerate() {
        if text(version, "/name").is_empty() {
            errors.push(FieldError::required(format!("spec.versions[{index}].name"), ""));
        }
        if !version.pointer("/schema/openAPIV3Schema").is_some_and(Value::is_object) {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
        } else {
            let path = if versions.len() == 1 {
                "spec.validation.openAPIV3Schema".to_owned()
            } else {
                format!("spec.versions[{index}].schema.openAPIV3Schema")
            };
            let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
            errors.extend(crd_schema::validate(schema, &path));
        }
    }
    errors
}

/// Formats a version as Go prints it.
fn format_version(version: &Value) -> String {
    let flag = |name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        json!(text(version, "/name")),
        flag("served"),
        flag("storage"),
        flag("deprecated")
    )
}

/// Checks that a CRD in a group of the Kubernetes community has the approval annotation.
fn check_protected_group(object: &Value) -> Option<FieldError> {
    let (group, approval) = (text(object, "/spec/group"), "api-approved.kubernetes.io");
    let is_protected = [".k8s.io", ".kubernetes.io"].iter().any(|end| group.ends_with(end));
    let approved = object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(approval)).is_some();
    (is_protected && !approved).then(|| {
        let detail = format!(
            "protected groups must have approval annotation {approval:?}, see https://github.com/kubernetes/enhancements/pull/1111"
        );
        FieldError::required(format!("metadata.annotations[{approval}]"), &detail)
    })
}

/// Checks that no version is removed in which objects may still be stored.
fn check_stored_versions(object: &Value) -> Vec<FieldError> {
    let declared: Vec<&str> = list(object, "/spec/versions").iter().map(|version| text(version, "/name")).collect();
    let stored = list(object, "/status/storedVersions").iter().filter_map(Value::as_str).enumerate();
    let missing = stored.filter(|(_, version)| !declared.contains(version));
    missing
        .map(|(index, version)| {
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            FieldError::invalid(format!("status.storedVersions[{index}]"), &json!(version), &detail)
        })
        .collect()
}
