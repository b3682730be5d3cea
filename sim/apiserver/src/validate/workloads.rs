//! The rules of pods and of what makes pods, as far as people break them.

use serde_json::{Value, json};

use super::names::{LABEL, is_label};
use crate::error::FieldError;
use crate::pointer::{list, text};

/// What is wrong with the pod that something makes, or with a pod itself.
pub(super) fn pod_spec(spec: &Value, at: &str, restart: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes: Vec<&str> = list(spec, "/volumes").iter().map(|volume| text(volume, "/name")).collect();
    let containers = list(spec, "/containers");
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    for (index, container) in containers.iter().enumerate() {
        errors.extend(self::container(container, &format!("{at}.containers[{index}]"), &volumes));
    }
    let policy = text(spec, "/restartPolicy");
    if !restart.contains(&policy) && !policy.is_empty() {
        let supported: Vec<String> = restart.iter().map(|policy| format!("{policy:?}")).collect();
        errors.push(FieldError::unsupported(format!("{at}.restartPolicy"), &json!(policy), &supported));
    }
    errors
}

fn container(container: &Value, at: &str, volumes: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(container, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    } else if !is_label(name) {
        errors.push(FieldError::invalid(format!("{at}.name"), &json!(name), LABEL));
    }
    if text(container, "/image").is_empty() {
        errors.push(FieldError::required(format!("{at}.image"), ""));
    }
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        if !number.as_i64().is_some_and(|number| (1..=65_535).contains(&number)) {
            let field = format!("{at}.ports[{index}].containerPort");
            errors.push(FieldError::invalid(field, &number, "must be between 1 and 65535, inclusive"));
        }
    }
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let name = text(mount, "/name");
        if !volumes.contains(&name) {
            errors.push(FieldError::not_found(format!("{at}.volumeMounts[{index}].name"), &json!(name)));
        }
    }
    errors
}

pub(super) const ANY_RESTART: [&str; 3] = ["Always", "OnFailure", "Never"];

pub(super) fn job(object: &Value) -> Vec<FieldError> {
    let at = "spec.template.spec";
    let spec = object.pointer("/spec/template/spec").cloned().unwrap_or_default();
    let mut errors = pod_spec(&spec, at, &ANY_RESTART);
    if matches!(text(&spec, "/restartPolicy"), "" | "Always") {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{at}.restartPolicy"), why));
    }
    errors
}

pub(super) fn cron_job(object: &Value) -> Vec<FieldError> {
    let schedule = text(object, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() == 5 || schedule.starts_with('@') {
        return Vec::new();
    }
    let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
    vec![FieldError::invalid("spec.schedule", &json!(schedule), &why)]
}

pub(super) fn deployment(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let selector = object.pointer("/spec/selector").filter(|selector| !selector.is_null());
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    let wanted = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let has_none = wanted.is_none_or(serde_json::Map::is_empty)
        && selector.is_none_or(|selector| list(selector, "/matchExpressions").is_empty());
    match selector {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) if has_none => {
            errors.push(FieldError::invalid("spec.selector", selector, "empty selector is invalid for deployment"));
        }
        Some(_) => {}
    }
    let fits = !has_none && wanted.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    if !fits {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", &labels, why));
    }
    if object.pointer("/spec/replicas").and_then(Value::as_i64).is_some_and(|replicas| replicas < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", &object["spec"]["replicas"], why));
    }
    let spec = object.pointer("/spec/template/spec").cloned().unwrap_or_default();
    errors.extend(pod_spec(&spec, "spec.template.spec", &["Always"]));
    errors
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
