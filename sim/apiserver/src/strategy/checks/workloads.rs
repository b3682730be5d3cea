//! Checks of kinds that contain a pod template.

use serde_json::{Value, json};

use super::pod_spec;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};

/// Restart policies of pods and jobs.
pub(crate) const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

/// Validates a kind that selects its pods by labels.
pub(crate) fn validate_selecting_workload(
    object: &Value,
    kind_name: &str,
    required: bool,
    claims: &[&str],
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = object.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    let match_labels = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let selects_all = match_labels.is_none_or(serde_json::Map::is_empty)
        && selector.is_none_or(|selector| array_at(selector, "/matchExpressions").is_empty());
    match selector {
        None if required => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) if selects_all => {
            let detail = format!("empty selector is invalid for {kind_name}");
            errors.push(FieldError::invalid("spec.selector", selector, &detail));
        }
        _ => {}
    }
    let matches =
        selector.is_some() && match_labels.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    if !matches {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", &labels, detail));
    }
    for field in ["replicas", "minReadySeconds"] {
        let number = object["spec"].get(field);
        if let Some(number) = number.filter(|number| number.as_i64().is_some_and(|number| number < 0)) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("spec.{field}"), number, detail));
        }
    }
    let spec = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    errors.extend(pod_spec::validate_spec(spec, "spec.template.spec", &["Always"], claims));
    errors
}

/// Validates the pod spec of a job, which has to name its restart policy.
pub(crate) fn validate_job_pod_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = pod_spec::validate_spec(spec, path, &RESTART_POLICIES, &[]);
    if matches!(string_at(spec, "/restartPolicy"), "" | "Always") {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{path}.restartPolicy"), detail));
    }
    errors
}

/// Checks the counts in the status of a Deployment or StatefulSet.
pub(crate) fn validate_status_counts(object: &Value) -> Vec<FieldError> {
    let count = |name: &str| object["status"].get(name).and_then(Value::as_i64).unwrap_or_default();
    let all = count("replicas");
    let mut errors = Vec::new();
    for name in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"] {
        let (value, field) = (count(name), format!("status.{name}"));
        if value < 0 {
            errors.push(FieldError::invalid(&field, &json!(value), "must be greater than or equal to 0"));
        }
        if value > all && !matches!(name, "replicas" | "unavailableReplicas") {
            errors.push(FieldError::invalid(&field, &json!(value), "cannot be greater than status.replicas"));
        }
    }
    errors
}

/// Returns the warnings for the pod template of a workload.
pub(crate) fn template_warnings(object: &Value) -> Vec<String> {
    let spec = object.pointer("/spec/template/spec");
    spec.map(|spec| pod_spec::warnings(spec, "spec.template.spec")).unwrap_or_default()
}
