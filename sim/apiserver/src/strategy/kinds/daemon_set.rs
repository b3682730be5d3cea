//! DaemonSet.

use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::metadata;
use crate::registry::types::SchemaType;
use crate::strategy::checks::immutability::check_immutable;
use crate::strategy::checks::workloads::{template_warnings, validate_selecting_workload};
use crate::strategy::default_values::set_default;
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

/// Deprecated annotation with the number of changes of the template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) struct DaemonSet;

impl Strategy for DaemonSet {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
        // Only the server counts; the first value belongs to the writer.
        set_default(annotations, TEMPLATE_GENERATION, json!("0"));
    }

    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        count_template_changes(&Value::Null, object);
    }

    fn prepare_for_update(
        &self,
        _context: &mut PrepareContext<'_>,
        live: &Value,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        count_template_changes(live, object);
        Ok(())
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate_selecting_workload(object, "daemonset", false, &[])
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        check_immutable("spec.selector", "/spec/selector", live, object).into_iter().collect()
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }
}

/// Counts the changes of the template in the annotation, which only the server sets.
fn count_template_changes(live: &Value, object: &mut Value) {
    let known = live["metadata"]["annotations"].get(TEMPLATE_GENERATION).and_then(Value::as_str);
    let known: u64 = known.and_then(|count| count.parse().ok()).unwrap_or_default();
    let changed = live.pointer("/spec/template") != object.pointer("/spec/template");
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!((known + u64::from(changed)).to_string()));
    }
}
