//! CronJob.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::strategy::Strategy;
use crate::strategy::checks::pod_spec;
use crate::strategy::checks::workloads::validate_job_pod_spec;

/// Maximum length of a CronJob's name, so that the names of its jobs are valid.
const NAME_LENGTH_MAX: usize = 52;
/// Path of the pod spec.
const POD_SPEC: &str = "spec.jobTemplate.spec.template.spec";
/// JSON pointer to the pod spec.
const POD_SPEC_POINTER: &str = "/spec/jobTemplate/spec/template/spec";

pub(super) struct CronJob;

impl Strategy for CronJob {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let name = string_at(object, "/metadata/name");
        if name.len() > NAME_LENGTH_MAX {
            let detail = format!("must be no more than {NAME_LENGTH_MAX} characters");
            errors.push(FieldError::invalid("metadata.name", &json!(name), &detail));
        }
        let schedule = string_at(object, "/spec/schedule");
        let fields: Vec<&str> = schedule.split_whitespace().collect();
        if schedule.is_empty() {
            errors.push(FieldError::required("spec.schedule", ""));
        } else if fields.len() != 5 && !schedule.starts_with('@') {
            let detail = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
            errors.push(FieldError::invalid("spec.schedule", &json!(schedule), &detail));
        }
        let spec = object.pointer(POD_SPEC_POINTER).unwrap_or(&Value::Null);
        errors.extend(validate_job_pod_spec(spec, POD_SPEC));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        object.pointer(POD_SPEC_POINTER).map(|spec| pod_spec::warnings(spec, POD_SPEC)).unwrap_or_default()
    }
}
