//! Dispatches validation by built-in kind, and validates the small kinds.

use serde_json::{Value, json};

use super::{network, other_kinds, persistent_volume_claim, pods, service, workloads};
use crate::object::field_error::FieldError;
use crate::object::fields::text;

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(super) fn validate(kind: &str, object: &Value) -> Vec<FieldError> {
    match kind {
        "ConfigMap" => validate_data_keys(object),
        "Secret" => [validate_data_keys(object), validate_secret(object)].concat(),
        "Deployment" => [workloads::validate_deployment(object), validate_status_counts(object)].concat(),
        "StatefulSet" => [workloads::validate_stateful_set(object), validate_status_counts(object)].concat(),
        "DaemonSet" => workloads::validate_daemon_set(object),
        "NetworkPolicy" => network::validate_network_policy(object),
        "Job" => workloads::validate_job(object),
        "CronJob" => workloads::validate_cron_job(object),
        "Pod" => {
            let spec = object.get("spec").cloned().unwrap_or_default();
            pods::validate_spec(&spec, "spec", &workloads::RESTART_POLICIES, &[])
        }
        "Lease" => validate_lease(object),
        "Service" => service::validate(object),
        "RoleBinding" | "ClusterRoleBinding" => other_kinds::validate_role_binding(object),
        "Role" | "ClusterRole" => other_kinds::validate_role(object),
        "PersistentVolumeClaim" => persistent_volume_claim::validate(object),
        "Ingress" => network::validate_ingress(object),
        "HorizontalPodAutoscaler" => other_kinds::validate_autoscaler(object),
        "PodDisruptionBudget" => other_kinds::validate_disruption_budget(object),
        "Event" => other_kinds::validate_event(object),
        _ => Vec::new(),
    }
}

pub(super) fn validate_change(kind: &str, live: &Value, object: &Value) -> Vec<FieldError> {
    let changed = |pointer: &str| live.pointer(pointer) != object.pointer(pointer);
    let immutable = |field: &str, pointer: &str| {
        let value = object.pointer(pointer).cloned().unwrap_or_default();
        FieldError::invalid(field, &value, "field is immutable")
    };
    let mut errors = match kind {
        "Pod" => workloads::validate_pod_change(live, object),
        "StatefulSet" => workloads::validate_stateful_set_change(live, object),
        "Job" => other_kinds::validate_job_change(live, object),
        "PersistentVolumeClaim" => persistent_volume_claim::validate_change(live, object),
        "RoleBinding" | "ClusterRoleBinding" => other_kinds::validate_role_binding_change(live, object),
        "Service" => service::validate_change(live, object),
        // The real server checks twice.
        "NetworkPolicy" => network::validate_network_policy(object),
        _ => Vec::new(),
    };
    match kind {
        "Deployment" | "DaemonSet" if changed("/spec/selector") => {
            errors.push(immutable("spec.selector", "/spec/selector"))
        }
        "Secret" if changed("/type") => errors.push(immutable("type", "/type")),
        _ => {}
    }
    if matches!(kind, "ConfigMap" | "Secret") && live.get("immutable") == Some(&json!(true)) {
        let detail = "field is immutable when `immutable` is set";
        let fields =
            ["immutable", "data", "binaryData"].into_iter().filter(|field| live.get(field) != object.get(field));
        errors.extend(fields.map(|field| FieldError::forbidden(field, detail)));
    }
    errors
}

fn validate_data_keys(object: &Value) -> Vec<FieldError> {
    let data = object.pointer("/data").and_then(Value::as_object);
    let valid = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let invalid = data.into_iter().flatten().filter(|(key, _)| !valid(key));
    let mut errors: Vec<FieldError> =
        invalid.map(|(key, _)| FieldError::invalid(format!("data[{key}]"), &json!(key), CONFIG_KEY)).collect();
    let binary = object.pointer("/binaryData").and_then(Value::as_object);
    let duplicates =
        data.into_iter().flatten().filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key)));
    let detail = "duplicate of key present in binaryData";
    errors.extend(duplicates.map(|(key, _)| FieldError::invalid(format!("data[{key}]"), &json!(key), detail)));
    let size: usize =
        data.into_iter().flatten().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX));
    }
    errors
}

/// Maximum size of the data of a ConfigMap or a Secret.
const DATA_BYTES_MAX: usize = 1024 * 1024;

/// Checks that a secret has the keys that its type requires.
fn validate_secret(object: &Value) -> Vec<FieldError> {
    let required: &[&str] = match text(object, "/type") {
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    let missing = required.iter().filter(|key| object["data"].get(**key).is_none());
    missing.map(|key| FieldError::required(format!("data[{key}]"), "")).collect()
}

fn validate_lease(object: &Value) -> Vec<FieldError> {
    let seconds = object.pointer("/spec/leaseDurationSeconds");
    let invalid = seconds.filter(|seconds| seconds.as_i64().is_some_and(|seconds| seconds <= 0));
    invalid
        .map(|seconds| FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        .into_iter()
        .collect()
}

/// Checks the counts in the status of a Deployment or StatefulSet.
fn validate_status_counts(object: &Value) -> Vec<FieldError> {
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
