//! Checks of kinds that contain a pod template.

use serde_json::{Value, json};

use super::names::label_name_errors;
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
    let mut errors = validate_label_selector(object, kind_name, required);
    errors.extend(validate_counts(object));
    errors.extend(validate_template_spec(object, claims));
    errors
}

/// Validates the spec of the pod template of pods that always restart.
pub(crate) fn validate_template_spec(object: &Value, claims: &[&str]) -> Vec<FieldError> {
    let spec = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    pod_spec::validate_spec(spec, "spec.template.spec", &["Always"], claims)
}

/// Checks that the selector is not empty and matches the labels of the template.
pub(crate) fn validate_label_selector(object: &Value, kind_name: &str, required: bool) -> Vec<FieldError> {
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
        errors.push(FieldError::invalid("spec.template.metadata.labels", &labels, UNSELECTED_TEMPLATE));
    }
    errors
}

/// Error of a template whose labels the selector does not match.
pub(crate) const UNSELECTED_TEMPLATE: &str = "`selector` does not match template `labels`";
/// Error of a negative number.
pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";

/// Checks that the replicas and the seconds of readiness are not negative.
pub(crate) fn validate_counts(object: &Value) -> Vec<FieldError> {
    let is_negative = |number: &&Value| number.as_i64().is_some_and(|number| number < 0);
    let negative = ["replicas", "minReadySeconds"]
        .into_iter()
        .filter_map(|field| Some((field, object["spec"].get(field).filter(is_negative)?)));
    negative.map(|(field, number)| FieldError::invalid(format!("spec.{field}"), number, NEGATIVE)).collect()
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
            errors.push(FieldError::invalid(&field, &json!(value), NEGATIVE));
        }
        if value > all && !matches!(name, "replicas" | "unavailableReplicas") {
            errors.push(FieldError::invalid(&field, &json!(value), "cannot be greater than status.replicas"));
        }
    }
    errors
}

/// Checks the counts in the status of a ReplicaSet or ReplicationController.
pub(crate) fn validate_replica_counts(object: &Value) -> Vec<FieldError> {
    let count = |name: &str| object["status"].get(name).and_then(Value::as_i64).unwrap_or_default();
    let invalid = |name: &str, detail: &str| FieldError::invalid(format!("status.{name}"), &json!(count(name)), detail);
    let fields = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    let mut errors: Vec<FieldError> =
        fields.into_iter().filter(|name| count(name) < 0).map(|name| invalid(name, NEGATIVE)).collect();
    let exceeding = fields[1..4].iter().filter(|name| count(name) > count("replicas"));
    errors.extend(exceeding.map(|name| invalid(name, "cannot be greater than status.replicas")));
    if count("availableReplicas") > count("readyReplicas") {
        errors.push(invalid("availableReplicas", "cannot be greater than readyReplicas"));
    }
    errors
}

/// Returns the warnings for a new workload: about its name, which is that of its pods, and about its pod template.
pub(crate) fn creation_warnings(object: &Value, template_warnings: Vec<String>) -> Vec<String> {
    let rule =
        "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended";
    name_warning(object, rule).into_iter().chain(template_warnings).collect()
}

/// Returns the warning about a name that is no DNS label.
pub(crate) fn name_warning(object: &Value, rule: &str) -> Option<String> {
    let errors = label_name_errors(string_at(object, "/metadata/name"));
    (!errors.is_empty()).then(|| format!("metadata.name: {rule}: [{}]", errors.join(" ")))
}

/// Returns the warnings for the pod template of a workload.
pub(crate) fn template_warnings(object: &Value) -> Vec<String> {
    let spec = object.pointer("/spec/template/spec");
    spec.map(|spec| pod_spec::warnings(spec, "spec.template.spec")).unwrap_or_default()
}
