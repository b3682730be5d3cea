//! CustomResourceDefinition.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::object::conditions::set_condition;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, format_timestamp, metadata, name, string_at};
use crate::object::finalizers::CLEANUP;
use crate::registry::types::SchemaType;
use crate::schema::crd_schema;
use crate::strategy::checks::immutability::check_immutable;
use crate::strategy::default_values::{map_field, set_default};
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

pub(super) struct CustomResourceDefinition;

impl Strategy for CustomResourceDefinition {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let Some(spec) = map_field(object, "spec") else { return };
        set_default(spec, "conversion", json!({"strategy": "None"}));
        if let Some(names) = map_field(spec, "names") {
            let kind = string_at(names, "/kind").to_owned();
            set_default(names, "singular", json!(kind.to_lowercase()));
            set_default(names, "listKind", json!(format!("{kind}List")));
        }
    }

    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        let stored = storage_versions(object);
        object["status"] =
            json!({"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    }

    fn prepare_for_update(
        &self,
        _context: &mut PrepareContext<'_>,
        _live: &Value,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        let added = storage_versions(object);
        if let Some(known) = object.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut) {
            let new: Vec<Value> = added.into_iter().filter(|version| !known.contains(version)).collect();
            known.extend(new);
        }
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let expected = format!("{}.{}", string_at(object, "/spec/names/plural"), string_at(object, "/spec/group"));
        if name(object) != expected {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid("metadata.name", &json!(name(object)), detail));
        }
        for (field, pointer) in [
            ("spec.group", "/spec/group"),
            ("spec.names.plural", "/spec/names/plural"),
            ("spec.names.kind", "/spec/names/kind"),
        ] {
            if string_at(object, pointer).is_empty() {
                errors.push(FieldError::required(field, ""));
            }
        }
        let scope = string_at(object, "/spec/scope");
        if !matches!(scope, "Cluster" | "Namespaced") {
            let supported = ["\"Cluster\"", "\"Namespaced\""].map(str::to_owned);
            errors.push(FieldError::unsupported("spec.scope", &json!(scope), &supported));
        }
        let versions = array_at(object, "/spec/versions");
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
            if string_at(version, "/name").is_empty() {
                errors.push(FieldError::required(format!("spec.versions[{index}].name"), ""));
            }
            let warning = string_at(version, "/deprecationWarning");
            if let Some((position, _)) = warning.char_indices().find(|(_, character)| character.is_control()) {
                let field = format!("spec.versions[{index}].deprecationWarning");
                let detail = format!(
                    "must only contain printable UTF-8 characters; non-printable character found at index {position}"
                );
                errors.push(FieldError::invalid(field, &json!(warning), &detail));
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

    /// Checks the fields that cannot change: the group and the plural never, scope and kind once the names are accepted.
    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let established = array_at(live, "/status/conditions")
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        let accepted = [("spec.scope", "/spec/scope"), ("spec.names.kind", "/spec/names/kind")];
        let always = [("spec.group", "/spec/group"), ("spec.names.plural", "/spec/names/plural")];
        let fields = accepted.into_iter().filter(|_| established).chain(always);
        fields.filter_map(|(field, pointer)| check_immutable(field, pointer, live, object)).collect()
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        crd_schema::warnings(object)
    }

    /// Returns the object without a list of conditions.
    fn created_response(&self, object: &Value) -> Option<Value> {
        let mut response = object.clone();
        response["status"]["conditions"] = Value::Null;
        Some(response)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn finalizers_on_delete(&self) -> &'static [&'static str] {
        &[CLEANUP]
    }

    fn prepare_for_delete(&self, now: Timestamp, live: &Value, object: &mut Value) {
        // Unlike those of other kinds, the generation does not increase.
        if let Some(generation) = live.pointer("/metadata/generation") {
            metadata(object).insert("generation".to_owned(), generation.clone());
        }
        let message = "CustomResource deletion is in progress";
        set_condition(object, &format_timestamp(now), "Terminating", true, "InstanceDeletionInProgress", message);
    }
}

/// Formats a version as Go prints it.
fn format_version(version: &Value) -> String {
    let flag = |name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        json!(string_at(version, "/name")),
        flag("served"),
        flag("storage"),
        flag("deprecated")
    )
}

/// Checks that a CRD in a group of the Kubernetes community has the approval annotation.
fn check_protected_group(object: &Value) -> Option<FieldError> {
    let (group, approval) = (string_at(object, "/spec/group"), "api-approved.kubernetes.io");
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
    let declared: Vec<&str> =
        array_at(object, "/spec/versions").iter().map(|version| string_at(version, "/name")).collect();
    let stored = array_at(object, "/status/storedVersions").iter().filter_map(Value::as_str).enumerate();
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

/// Returns the names of the versions in which objects are stored.
fn storage_versions(crd: &Value) -> Vec<Value> {
    let stored = |version: &&Value| version.get("storage") == Some(&json!(true));
    array_at(crd, "/spec/versions").iter().filter(stored).filter_map(|version| version.get("name").cloned()).collect()
}
