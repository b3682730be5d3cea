//! Namespace.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, is_deleting, metadata, name, string_at};
use crate::registry::types::SchemaType;
use crate::strategy::checks::names::label_name_errors;
use crate::strategy::{PrepareContext, Strategy};

pub(crate) struct Namespace;

impl Strategy for Namespace {
    /// Sets the label with the name of the namespace.
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let own_name = json!(name(object));
        let labels = metadata(object).entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut().filter(|_| own_name != "") {
            labels.insert("kubernetes.io/metadata.name".to_owned(), own_name);
        }
    }

    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        let mut finalizers = array_at(object, "/spec/finalizers").to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
            finalizers.push(json!("kubernetes"));
        }
        object["spec"] = json!({ "finalizers": finalizers });
        object["status"] = json!({"phase": "Active"});
    }

    fn prepare_for_update(
        &self,
        _context: &mut PrepareContext<'_>,
        live: &Value,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        object["spec"] = live["spec"].clone();
        Ok(())
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        if name.contains('.') { vec!["must not contain dots".to_owned()] } else { label_name_errors(name) }
    }

    /// Rejects unknown levels of Pod Security.
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let levels = ["privileged", "baseline", "restricted"];
        let mut errors = Vec::new();
        for mode in ["enforce", "audit", "warn"] {
            let label = format!("pod-security.kubernetes.io/{mode}");
            let level = object["metadata"]["labels"].get(&label).and_then(Value::as_str);
            if let Some(level) = level.filter(|level| !levels.contains(level)) {
                let detail = format!("must be one of {}", levels.join(", "));
                errors.push(FieldError::invalid(format!("metadata.labels[{label}]"), &json!(level), &detail));
            }
        }
        errors
    }

    fn validate_status(&self, object: &Value) -> Vec<FieldError> {
        let phase = string_at(object, "/status/phase");
        let (expected, detail) = if is_deleting(object) {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        if phase == expected { Vec::new() } else { vec![FieldError::invalid("status.Phase", &json!(phase), detail)] }
    }

    fn has_finalizers_in_spec(&self, object: &Value) -> bool {
        !array_at(object, "/spec/finalizers").is_empty()
    }

    fn prepare_for_delete(&self, _now: Timestamp, _live: &Value, object: &mut Value) {
        metadata(object).remove("deletionGracePeriodSeconds");
        object["status"]["phase"] = json!("Terminating");
    }

    fn reports_preconditions_as_storage(&self) -> bool {
        true
    }
}
