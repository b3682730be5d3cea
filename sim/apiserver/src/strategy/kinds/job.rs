//! Job.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{metadata, name, uid};
use crate::registry::types::SchemaType;
use crate::strategy::checks::workloads::{template_warnings, validate_job_pod_spec};
use crate::strategy::default_values::{map_field, set_default};
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

pub(super) struct Job;

impl Strategy for Job {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let Some(spec) = map_field(object, "spec") else { return };
        let unset = |spec: &Value, name: &str| spec.get(name).is_none_or(Value::is_null);
        if unset(spec, "completions") && unset(spec, "parallelism") {
            set_default(spec, "completions", json!(1));
        }
        set_default(spec, "parallelism", json!(1));
        set_default(spec, "backoffLimit", json!(6));
        set_default(spec, "completionMode", json!("NonIndexed"));
        set_default(spec, "suspend", json!(false));
        set_default(spec, "manualSelector", json!(false));
        let policy = if unset(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
        set_default(spec, "podReplacementPolicy", json!(policy));
    }

    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        set_selector_and_labels(object);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
        validate_job_pod_spec(spec, "spec.template.spec")
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for field in ["completions", "selector", "template", "completionMode"] {
            let (before, after) = (live["spec"].get(field), object["spec"].get(field));
            if before != after {
                let value = after.cloned().unwrap_or_default();
                errors.push(FieldError::invalid(format!("spec.{field}"), &value, "field is immutable"));
            }
        }
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        template_warnings(object)
    }
}

/// Sets the selector and the labels of a Job from its UID and name.
fn set_selector_and_labels(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (identity, own) = (uid(job).to_owned(), name(job).to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", identity.clone()),
        ("batch.kubernetes.io/job-name", own.clone()),
        ("controller-uid", identity.clone()),
        ("job-name", own),
    ];
    let Some(spec) = job.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": identity}});
    if let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) {
        let own = metadata(template).entry("labels").or_insert_with(|| json!({}));
        labels.iter().for_each(|(key, value)| own[*key] = json!(value));
    }
    let own = metadata(job).entry("labels").or_insert_with(|| json!({}));
    if own.is_object() {
        labels.iter().for_each(|(key, value)| own[*key] = json!(value));
    }
}
