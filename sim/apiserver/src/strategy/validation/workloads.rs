//! Validates the workload kinds.

use serde_json::{Value, json};

use super::pods;
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

pub(super) fn validate_job(object: &Value) -> Vec<FieldError> {
    let at = "spec.template.spec";
    let spec = object.pointer("/spec/template/spec").cloned().unwrap_or_default();
    let mut errors = pods::validate_spec(&spec, at, &RESTART_POLICIES, &[]);
    if matches!(text(&spec, "/restartPolicy"), "" | "Always") {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{at}.restartPolicy"), detail));
    }
    errors
}

/// Maximum length of a CronJob's name, so that the names of its jobs are valid.
const CRON_JOB_NAME_MAX: usize = 52;

pub(super) fn validate_cron_job(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(object, "/metadata/name");
    if name.len() > CRON_JOB_NAME_MAX {
        let detail = format!("must be no more than {CRON_JOB_NAME_MAX} characters");
        errors.push(FieldError::invalid("metadata.name", &json!(name), &detail));
    }
    let schedule = text(object, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    } else if fields.len() != 5 && !schedule.starts_with('@') {
        let detail = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        errors.push(FieldError::invalid("spec.schedule", &json!(schedule), &detail));
    }
    let at = "spec.jobTemplate.spec.template.spec";
    let spec = object.pointer("/spec/jobTemplate/spec/template/spec").unwrap_or(&Value::Null);
    errors.extend(pods::validate_spec(spec, at, &RESTART_POLICIES, &[]));
    if matches!(text(spec, "/restartPolicy"), "" | "Always") {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{at}.restartPolicy"), detail));
    }
    errors
}

/// Validates a kind that selects its pods by labels.
fn validate_selecting_workload(object: &Value, kind_name: &str, required: bool, claims: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = object.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    let match_labels = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let selects_all = match_labels.is_none_or(serde_json::Map::is_empty)
        && selector.is_none_or(|selector| list(selector, "/matchExpressions").is_empty());
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
    errors.extend(pods::validate_spec(spec, "spec.template.spec", &["Always"], claims));
    errors
}

pub(super) fn validate_deployment(object: &Value) -> Vec<FieldError> {
    let mut errors = validate_selecting_workload(object, "deployment", true, &[]);
    let strategy = object.pointer("/spec/strategy").unwrap_or(&Value::Null);
    let has_rolling_update = strategy.get("rollingUpdate").is_some_and(|rolling| !rolling.is_null());
    if text(strategy, "/type") == "Recreate" && has_rolling_update {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", detail));
    }
    errors
}

pub(super) fn validate_stateful_set(object: &Value) -> Vec<FieldError> {
    let claims: Vec<&str> =
        list(object, "/spec/volumeClaimTemplates").iter().map(|claim| text(claim, "/metadata/name")).collect();
    validate_selecting_workload(object, "statefulset", true, &claims)
}

pub(super) fn validate_daemon_set(object: &Value) -> Vec<FieldError> {
    validate_selecting_workload(object, "daemonset", false, &[])
}

/// Returns the warnings for a kind that contains a pod spec.
pub(super) fn warnings(kind: &str, object: &Value) -> Vec<String> {
    let (pointer, at) = match kind {
        "Pod" => ("/spec", "spec"),
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            ("/spec/template/spec", "spec.template.spec")
        }
        "CronJob" => ("/spec/jobTemplate/spec/template/spec", "spec.jobTemplate.spec.template.spec"),
        _ => return Vec::new(),
    };
    object.pointer(pointer).map(|spec| pods::warnings(spec, at)).unwrap_or_default()
}

/// Checks that only mutable fields of a pod's spec change.
pub(super) fn validate_pod_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let immutable_spec = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container["image"] = Value::Null;
            }
        }
        for field in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName"] {
            if let Some(spec) = spec.as_object_mut() {
                spec.remove(field);
            }
        }
        spec
    };
    if immutable_spec(live) == immutable_spec(object) {
        return Vec::new();
    }
    let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    vec![FieldError::forbidden("spec", detail)]
}

/// Mutable fields of a StatefulSet's spec.
const STATEFUL_SET_MUTABLE_FIELDS: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn validate_stateful_set_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let immutable_spec = |set: &Value| {
        let mut spec = set.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        spec.retain(|name, _| !STATEFUL_SET_MUTABLE_FIELDS.contains(&name.as_str()));
        spec
    };
    if immutable_spec(live) == immutable_spec(object) {
        return Vec::new();
    }
    let quoted: Vec<String> = STATEFUL_SET_MUTABLE_FIELDS.iter().map(|field| format!("'{field}'")).collect();
    let (last, others) =
        quoted.split_last().map(|(last, others)| (last.clone(), others.join(", "))).unwrap_or_default();
    let detail = format!("updates to statefulset spec for fields other than {others} and {last} are forbidden");
    vec![FieldError::forbidden("spec", &detail)]
}
