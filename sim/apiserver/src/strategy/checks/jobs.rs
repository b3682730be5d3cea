//! Checks of the spec of a Job, also in the template of a CronJob.

use serde_json::{Value, json};

use super::workloads::{NEGATIVE, validate_job_pod_spec};
use crate::object::field_error::FieldError;
use crate::object::fields::string_at;

/// Counts and durations that must not be negative, in the order in which they are checked.
const NUMBERS: [&str; 7] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];
const COMPLETION_MODES: [&str; 2] = ["NonIndexed", "Indexed"];
const REPLACEMENT_POLICIES: [&str; 2] = ["Failed", "TerminatingOrFailed"];
/// Largest parallelism and largest number of failed indexes of an indexed job.
const INDEXED_MAX: i64 = 100_000;

/// Returns the errors of the spec of a job.
pub(crate) fn validate_job_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    let mut errors = Vec::new();
    for field in NUMBERS {
        if let Some(negative) = number(field).filter(|number| *number < 0) {
            errors.push(FieldError::invalid(format!("{path}.{field}"), &json!(negative), NEGATIVE));
        }
    }
    if number("maxFailedIndexes").is_some() && number("backoffLimitPerIndex").is_none() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(format!("{path}.backoffLimitPerIndex"), detail));
    }
    errors.extend(check_choice(spec, path, "completionMode", &COMPLETION_MODES));
    if string_at(spec, "/completionMode") == "Indexed" {
        errors.extend(check_indexed(spec, path));
    } else {
        let detail = "requires indexed completion mode";
        let indexed = ["backoffLimitPerIndex", "maxFailedIndexes"];
        let set = indexed.into_iter().filter_map(|field| Some((field, number(field)?)));
        errors.extend(set.map(|(field, set)| FieldError::invalid(format!("{path}.{field}"), &json!(set), detail)));
    }
    let has_failure_policy = spec.get("podFailurePolicy").is_some_and(|policy| !policy.is_null());
    let replacement = if has_failure_policy { &REPLACEMENT_POLICIES[..1] } else { &REPLACEMENT_POLICIES[..] };
    errors.extend(check_choice(spec, path, "podReplacementPolicy", replacement));
    let pod_spec = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    errors.extend(validate_job_pod_spec(pod_spec, &format!("{path}.template.spec")));
    errors
}

fn check_indexed(spec: &Value, path: &str) -> Vec<FieldError> {
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    let mut errors = Vec::new();
    if number("completions").is_none() {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(format!("{path}.completions"), detail));
    }
    if let Some(parallelism) = number("parallelism").filter(|parallelism| *parallelism > INDEXED_MAX) {
        let detail = format!("must be less than or equal to {INDEXED_MAX} when completion mode is Indexed");
        errors.push(FieldError::invalid(format!("{path}.parallelism"), &json!(parallelism), &detail));
    }
    let Some(failed_max) = number("maxFailedIndexes") else { return errors };
    let field = format!("{path}.maxFailedIndexes");
    if number("completions").is_some_and(|completions| failed_max > completions) {
        errors.push(FieldError::invalid(&field, &json!(failed_max), "must be less than or equal to completions"));
    }
    if failed_max > INDEXED_MAX {
        let detail = format!("must be less than or equal to {INDEXED_MAX}");
        errors.push(FieldError::invalid(&field, &json!(failed_max), &detail));
    }
    errors
}

/// Checks that a field, if it is set, has one of these values.
pub(crate) fn check_choice(spec: &Value, path: &str, field: &str, choices: &[&str]) -> Option<FieldError> {
    let value = spec.get(field).filter(|value| value.as_str().is_some_and(|value| !choices.contains(&value)))?;
    let supported: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
    Some(FieldError::unsupported(format!("{path}.{field}"), value, &supported))
}
