//! Validates pod specs, also in templates, and returns the warnings for them.

use serde_json::{Value, json};

use super::names::{LABEL, is_label};
use super::ports::{check_number, check_number_or_name, port_name_errors};
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use sindri_cel::Quantity;

/// Returns all errors of a pod spec. `more_volumes` are volumes that the workload adds.
pub(crate) fn validate_spec(spec: &Value, path: &str, restart: &[&str], more_volumes: &[&str]) -> Vec<FieldError> {
    let (mut known, mut errors) = check_volumes(array_at(spec, "/volumes"), path, more_volumes.len());
    known.extend(more_volumes);
    errors.extend(check_tolerations(array_at(spec, "/tolerations"), path));
    let containers = array_at(spec, "/containers");
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        errors.extend(check_container(container, &path, &known));
        let name = string_at(container, "/name");
        if names.contains(&name) && !name.is_empty() {
            errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name).to_string()));
        }
        names.push(name);
    }
    let policy = string_at(spec, "/restartPolicy");
    if !restart.contains(&policy) && !policy.is_empty() {
        let supported: Vec<String> = restart.iter().map(|policy| format!("{policy:?}")).collect();
        errors.push(FieldError::unsupported(format!("{path}.restartPolicy"), &json!(policy), &supported));
    }
    errors
}

/// Volume sources, in the order in which the real server checks them.
const SOURCES: [&str; 10] = [
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "persistentVolumeClaim",
    "downwardAPI",
    "configMap",
    "projected",
    "csi",
    "ephemeral",
];

fn check_tolerations(tolerations: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        let (key, operator) = (string_at(toleration, "/key"), string_at(toleration, "/operator"));
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(format!("{path}.tolerations[{index}].operator"), &json!(operator), detail));
        }
    }
    errors
}

/// Checks volumes; returns the names of the valid ones, and the errors. Indices start after the volumes of claims.
fn check_volumes<'a>(volumes: &'a [Value], path: &str, claim_count: usize) -> (Vec<&'a str>, Vec<FieldError>) {
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    for (index, volume) in volumes.iter().enumerate() {
        let volume_errors = check_volume(volume, &names, &format!("{path}.volumes[{}]", claim_count + index));
        if volume_errors.is_empty() {
            names.push(string_at(volume, "/name"));
        }
        errors.extend(volume_errors);
    }
    (names, errors)
}

fn check_volume(volume: &Value, names: &[&str], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given: Vec<&&str> =
        SOURCES.iter().filter(|source| volume.get(**source).is_some_and(|value| !value.is_null())).collect();
    if let Some((first, others)) = given.split_first() {
        let detail = "may not specify more than 1 volume type";
        errors.extend(others.iter().map(|source| FieldError::forbidden(format!("{path}.{source}"), detail)));
        let required = match **first {
            "configMap" => Some("name"),
            "secret" => Some("secretName"),
            "persistentVolumeClaim" => Some("claimName"),
            "hostPath" => Some("path"),
            _ => None,
        };
        if let Some(field) = required.filter(|field| string_at(&volume[**first], &format!("/{field}")).is_empty()) {
            errors.push(FieldError::required(format!("{path}.{first}.{field}"), ""));
        }
    }
    let name = string_at(volume, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    } else if !is_label(name) {
        errors.push(FieldError::invalid(format!("{path}.name"), &json!(name), LABEL));
    } else if names.contains(&name) {
        errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name).to_string()));
    }
    errors
}

fn check_container(container: &Value, path: &str, volumes: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = string_at(container, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    } else if !is_label(name) {
        errors.push(FieldError::invalid(format!("{path}.name"), &json!(name), LABEL));
    }
    if string_at(container, "/image").is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    errors.extend(check_ports(array_at(container, "/ports"), path));
    for (index, variable) in array_at(container, "/env").iter().enumerate() {
        errors.extend(check_env_variable(variable, &format!("{path}.env[{index}]")));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(name).filter(|probe| !probe.is_null()) {
            errors.extend(check_probe(probe, &format!("{path}.{name}")));
        }
    }
    errors.extend(check_mounts(array_at(container, "/volumeMounts"), path, volumes));
    errors.extend(check_resources(container, path));
    errors
}

fn check_ports(ports: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let name = string_at(port, "/name");
        if !name.is_empty() {
            let details = port_name_errors(name);
            if details.is_empty() && names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name).to_string()));
            }
            errors
                .extend(details.iter().map(|detail| FieldError::invalid(format!("{path}.name"), &json!(name), detail)));
            names.push(name);
        }
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or_default() {
            0 => errors.push(FieldError::required(format!("{path}.containerPort"), "")),
            number => errors.extend(check_number(format!("{path}.containerPort"), number)),
        }
        let protocol = string_at(port, "/protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let supported = ["\"SCTP\"", "\"TCP\"", "\"UDP\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{path}.protocol"), &json!(protocol), &supported));
        }
    }
    errors
}

fn check_env_variable(variable: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if string_at(variable, "/name").is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let Some(from) = variable.get("valueFrom").filter(|from| !from.is_null()) else { return errors };
    let sources = from.as_object().map_or(0, |from| from.values().filter(|source| !source.is_null()).count());
    if sources == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(format!("{path}.valueFrom"), &json!(""), detail));
    }
    if from.get("fieldRef").is_some_and(Value::is_object) && string_at(from, "/fieldRef/fieldPath").is_empty() {
        errors.push(FieldError::required(format!("{path}.valueFrom.fieldRef.fieldPath"), ""));
    }
    if !string_at(variable, "/value").is_empty() && sources > 0 {
        let detail = "may not be specified when `value` is not empty";
        errors.push(FieldError::invalid(format!("{path}.valueFrom"), &json!(""), detail));
    }
    errors
}

/// Probe handlers, in the order in which the real server checks them.
const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];

fn check_probe(probe: &Value, path: &str) -> Vec<FieldError> {
    let given: Vec<&&str> =
        HANDLERS.iter().filter(|handler| probe.get(**handler).is_some_and(|value| !value.is_null())).collect();
    let Some((first, others)) = given.split_first() else {
        return vec![FieldError::required(path, "must specify a handler type")];
    };
    let detail = "may not specify more than 1 handler type";
    let mut errors: Vec<FieldError> =
        others.iter().map(|handler| FieldError::forbidden(format!("{path}.{handler}"), detail)).collect();
    match **first {
        "exec" if array_at(&probe["exec"], "/command").is_empty() => {
            errors.push(FieldError::required(format!("{path}.exec.command"), ""));
        }
        handler @ ("httpGet" | "tcpSocket") => {
            let port = probe[handler].get("port").cloned().unwrap_or_default();
            errors.extend(check_number_or_name(&format!("{path}.{handler}.port"), &port));
        }
        _ => {}
    }
    errors
}

fn check_mounts(mounts: &[Value], path: &str, volumes: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut mount_paths: Vec<&str> = Vec::new();
    for (index, mount) in mounts.iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let (name, mount_path) = (string_at(mount, "/name"), string_at(mount, "/mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        if !volumes.contains(&name) {
            errors.push(FieldError::not_found(format!("{path}.name"), &json!(name)));
        }
        if mount_path.is_empty() {
            errors.push(FieldError::required(format!("{path}.mountPath"), ""));
        }
        if mount_paths.contains(&mount_path) {
            errors.push(FieldError::invalid(format!("{path}.mountPath"), &json!(mount_path), "must be unique"));
        }
        mount_paths.push(mount_path);
    }
    errors
}

fn check_resources(container: &Value, path: &str) -> Vec<FieldError> {
    let amounts = |name: &str| container.pointer(&format!("/resources/{name}")).and_then(Value::as_object);
    let mut errors = Vec::new();
    for (name, request) in amounts("requests").into_iter().flatten() {
        let limit = amounts("limits").and_then(|limits| limits.get(name)).and_then(Value::as_str);
        let (Some(request), Some(limit)) =
            (request.as_str().and_then(Quantity::parse), limit.and_then(Quantity::parse))
        else {
            continue;
        };
        if request > limit {
            let detail = format!("must be less than or equal to {name} limit of {}", limit.canonical());
            errors.push(FieldError::invalid(
                format!("{path}.resources.requests"),
                &json!(request.canonical()),
                &detail,
            ));
        }
    }
    errors
}

/// Returns a warning for each variable that hides an earlier one of the same name.
fn hidden_variable_warnings(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for part in ["initContainers", "containers"] {
        for (index, container) in array_at(spec, &format!("/{part}")).iter().enumerate() {
            let variables = array_at(container, "/env");
            for (number, variable) in variables.iter().enumerate() {
                let name = string_at(variable, "/name");
                if variables[..number].iter().any(|other| string_at(other, "/name") == name) {
                    warnings.push(format!(
                        "{path}.{part}[{index}].env[{number}]: hides previous definition of {name:?}, which may be dropped when using apply"
                    ));
                }
            }
        }
    }
    warnings
}

/// Returns the warnings for a pod spec: hidden variables, and duplicate ports.
pub(crate) fn warnings(spec: &Value, path: &str) -> Vec<String> {
    let mut seen: Vec<(&Value, String)> = Vec::new();
    let mut warnings = hidden_variable_warnings(spec, path);
    for part in ["initContainers", "containers"] {
        for (index, container) in array_at(spec, &format!("/{part}")).iter().enumerate() {
            for (number, port) in array_at(container, "/ports").iter().enumerate() {
                let port_path = format!("{path}.{part}[{index}].ports[{number}]");
                let same = |other: &Value| {
                    ["containerPort", "protocol", "hostIP", "hostPort"]
                        .iter()
                        .all(|part| other.get(part) == port.get(part))
                };
                for (_, other) in seen.iter().filter(|(other, _)| same(other)) {
                    warnings.push(format!("{port_path}: duplicate port definition with {other}"));
                }
                seen.push((port, port_path));
            }
        }
    }
    let mut named: Vec<(&str, &str)> = Vec::new();
    for (port, path) in &seen {
        let name = string_at(port, "/name");
        match named.iter().find(|(other, _)| *other == name) {
            _ if name.is_empty() => {}
            Some((_, other)) => warnings.push(format!(
                "{path}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
            )),
            None => named.push((name, path)),
        }
    }
    warnings
}
