//! The rules of pods and of what makes pods, as far as people break them.

use serde_json::{Value, json};

use super::pods;
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) const ANY_RESTART: [&str; 3] = ["Always", "OnFailure", "Never"];

pub(super) fn job(object: &Value) -> Vec<FieldError> {
    let at = "spec.template.spec";
    let spec = object.pointer("/spec/template/spec").cloned().unwrap_or_default();
    let mut errors = pods::spec(&spec, at, &ANY_RESTART, &[]);
    if matches!(text(&spec, "/restartPolicy"), "" | "Always") {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{at}.restartPolicy"), why));
    }
    errors
}

/// How long the name of a cron job may be, so that those of its jobs are names too.
const CRON_JOB_NAME_MAX: usize = 52;

pub(super) fn cron_job(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(object, "/metadata/name");
    if name.len() > CRON_JOB_NAME_MAX {
        let why = format!("must be no more than {CRON_JOB_NAME_MAX} characters");
        errors.push(FieldError::invalid("metadata.name", &json!(name), &why));
    }
    let schedule = text(object, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    } else if fields.len() != 5 && !schedule.starts_with('@') {
        let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        errors.push(FieldError::invalid("spec.schedule", &json!(schedule), &why));
    }
    let at = "spec.jobTemplate.spec.template.spec";
    let spec = object.pointer("/spec/jobTemplate/spec/template/spec").unwrap_or(&Value::Null);
    errors.extend(pods::spec(spec, at, &ANY_RESTART, &[]));
    if matches!(text(spec, "/restartPolicy"), "" | "Always") {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{at}.restartPolicy"), why));
    }
    errors
}

/// What is wrong with a kind that keeps pods which its selector selects.
fn selecting(object: &Value, what: &str, required: bool, of_claims: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = object.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    let wanted = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let selects_all = wanted.is_none_or(serde_json::Map::is_empty)
        && selector.is_none_or(|selector| list(selector, "/matchExpressions").is_empty());
    match selector {
        None if required => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) if selects_all => {
            let why = format!("empty selector is invalid for {what}");
            errors.push(FieldError::invalid("spec.selector", selector, &why));
        }
        _ => {}
    }
    let fits = selector.is_some() && wanted.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    if !fits {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", &labels, why));
    }
    for field in ["replicas", "minReadySeconds"] {
        let number = object["spec"].get(field);
        if let Some(number) = number.filter(|number| number.as_i64().is_some_and(|number| number < 0)) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("spec.{field}"), number, why));
        }
    }
    let spec = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    errors.extend(pods::spec(spec, "spec.template.spec", &["Always"], of_claims));
    errors
}

pub(super) fn deployment(object: &Value) -> Vec<FieldError> {
    let mut errors = selecting(object, "deployment", true, &[]);
    let strategy = object.pointer("/spec/strategy").unwrap_or(&Value::Null);
    let rolling = strategy.get("rollingUpdate").is_some_and(|rolling| !rolling.is_null());
    if text(strategy, "/type") == "Recreate" && rolling {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden("spec.strategy.rollingUpdate", why));
    }
    errors
}

pub(super) fn stateful_set(object: &Value) -> Vec<FieldError> {
    let claims: Vec<&str> =
        list(object, "/spec/volumeClaimTemplates").iter().map(|claim| text(claim, "/metadata/name")).collect();
    selecting(object, "statefulset", true, &claims)
}

pub(super) fn daemon_set(object: &Value) -> Vec<FieldError> {
    selecting(object, "daemonset", false, &[])
}

/// What the author of something that makes pods is warned of.
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

/// Only a few fields of a pod may change.
pub(super) fn pod_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let fixed = |pod: &Value| {
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
    if fixed(live) == fixed(object) {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    vec![FieldError::forbidden("spec", why)]
}

/// The fields of a stateful set that may change.
const STATEFUL_SET_CHANGES: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn stateful_set_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let fixed = |set: &Value| {
        let mut spec = set.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        spec.retain(|name, _| !STATEFUL_SET_CHANGES.contains(&name.as_str()));
        spec
    };
    if fixed(live) == fixed(object) {
        return Vec::new();
    }
    let quoted: Vec<String> = STATEFUL_SET_CHANGES.iter().map(|field| format!("'{field}'")).collect();
    let (last, others) =
        quoted.split_last().map(|(last, others)| (last.clone(), others.join(", "))).unwrap_or_default();
    let why = format!("updates to statefulset spec for fields other than {others} and {last} are forbidden");
    vec![FieldError::forbidden("spec", &why)]
}
