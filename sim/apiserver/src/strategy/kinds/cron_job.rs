//! CronJob.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::strategy::Strategy;
use crate::strategy::checks::jobs::{check_choice, validate_job_spec};
use crate::strategy::checks::pod_spec;
use crate::strategy::checks::workloads::{NEGATIVE, creation_warnings};

/// Maximum length of a CronJob's name, so that the names of its jobs are valid.
const NAME_LENGTH_MAX: usize = 52;
/// Path of the pod spec.
const POD_SPEC: &str = "spec.jobTemplate.spec.template.spec";
/// JSON pointer to the pod spec.
const POD_SPEC_POINTER: &str = "/spec/jobTemplate/spec/template/spec";

const CONCURRENCY_POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];
const JOB_SPEC: &str = "spec.jobTemplate.spec";

fn check_negative(spec: &Value, field: &str) -> Option<FieldError> {
    let negative = spec.get(field).filter(|number| number.as_i64().is_some_and(|number| number < 0))?;
    Some(FieldError::invalid(format!("spec.{field}"), negative, NEGATIVE))
}

/// Checks that the jobs get their selector from the server.
fn check_selector(spec: &Value) -> Option<FieldError> {
    let selector = spec.pointer("/jobTemplate/spec/selector").filter(|selector| !selector.is_null())?;
    Some(FieldError::invalid(format!("{JOB_SPEC}.selector"), selector, "`selector` will be auto-generated"))
}

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
        let spec = object.get("spec").unwrap_or(&Value::Null);
        errors.extend(check_negative(spec, "startingDeadlineSeconds"));
        errors.extend(check_choice(spec, "spec", "concurrencyPolicy", &CONCURRENCY_POLICIES));
        errors.extend(validate_job_spec(spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null), JOB_SPEC));
        errors.extend(check_selector(spec));
        errors.extend(check_negative(spec, "successfulJobsHistoryLimit"));
        errors.extend(check_negative(spec, "failedJobsHistoryLimit"));
        errors
    }

    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        creation_warnings(object, self.warnings(object))
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        object.pointer(POD_SPEC_POINTER).map(|spec| pod_spec::warnings(spec, POD_SPEC)).unwrap_or_default()
    }
}
