//! The rules of the built-in kinds.

use serde_json::{Value, json};

use super::{network, other_kinds, persistent_volume_claim, pods, service, workloads};
use crate::object::field_error::FieldError;
use crate::object::fields::text;

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(super) fn validate(kind: &str, object: &Value) -> Vec<FieldError> {
    match kind {
        "ConfigMap" => keys(object),
        "Secret" => [keys(object), secret(object)].concat(),
        "Deployment" => [workloads::deployment(object), counts(object)].concat(),
        "StatefulSet" => [workloads::stateful_set(object), counts(object)].concat(),
        "DaemonSet" => workloads::daemon_set(object),
        "NetworkPolicy" => network::policy(object),
        "Job" => workloads::job(object),
        "CronJob" => workloads::cron_job(object),
        "Pod" => {
            let spec = object.get("spec").cloned().unwrap_or_default();
            pods::spec(&spec, "spec", &workloads::ANY_RESTART, &[])
        }
        "Lease" => lease(object),
        "Service" => service::validate(object),
        "RoleBinding" | "ClusterRoleBinding" => other_kinds::binding(object),
        "Role" | "ClusterRole" => other_kinds::role(object),
        "PersistentVolumeClaim" => persistent_volume_claim::validate(object),
        "Ingress" => network::ingress(object),
        "HorizontalPodAutoscaler" => other_kinds::autoscaler(object),
        "PodDisruptionBudget" => other_kinds::budget(object),
        "Event" => other_kinds::event(object),
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
        "Pod" => workloads::pod_change(live, object),
        "StatefulSet" => workloads::stateful_set_change(live, object),
        "Job" => other_kinds::job_change(live, object),
        "PersistentVolumeClaim" => persistent_volume_claim::validate_change(live, object),
        "RoleBinding" | "ClusterRoleBinding" => other_kinds::binding_change(live, object),
        "Service" => service::validate_change(live, object),
        // The real server looks twice.
        "NetworkPolicy" => network::policy(object),
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
        let why = "field is immutable when `immutable` is set";
        let fields =
            ["immutable", "data", "binaryData"].into_iter().filter(|field| live.get(field) != object.get(field));
        errors.extend(fields.map(|field| FieldError::forbidden(field, why)));
    }
    errors
}

fn keys(object: &Value) -> Vec<FieldError> {
    let data = object.pointer("/data").and_then(Value::as_object);
    let valid = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let invalid = data.into_iter().flatten().filter(|(key, _)| !valid(key));
    let mut errors: Vec<FieldError> =
        invalid.map(|(key, _)| FieldError::invalid(format!("data[{key}]"), &json!(key), CONFIG_KEY)).collect();
    let binary = object.pointer("/binaryData").and_then(Value::as_object);
    let twice = data.into_iter().flatten().filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key)));
    let why = "duplicate of key present in binaryData";
    errors.extend(twice.map(|(key, _)| FieldError::invalid(format!("data[{key}]"), &json!(key), why)));
    let size: usize =
        data.into_iter().flatten().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX));
    }
    errors
}

/// How much a config map or a secret may hold.
const DATA_BYTES_MAX: usize = 1024 * 1024;

/// What a secret of a certain type must have.
fn secret(object: &Value) -> Vec<FieldError> {
    let needed: &[&str] = match text(object, "/type") {
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    let missing = needed.iter().filter(|key| object["data"].get(**key).is_none());
    missing.map(|key| FieldError::required(format!("data[{key}]"), "")).collect()
}

fn lease(object: &Value) -> Vec<FieldError> {
    let seconds = object.pointer("/spec/leaseDurationSeconds");
    let wrong = seconds.filter(|seconds| seconds.as_i64().is_some_and(|seconds| seconds <= 0));
    wrong
        .map(|seconds| FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        .into_iter()
        .collect()
}

/// The counts in the status of a Deployment.
fn counts(object: &Value) -> Vec<FieldError> {
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
