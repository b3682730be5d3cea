//! Validates pod specs, also in templates, and returns the warnings for them.

use serde_json::{Value, json};

use super::names::{LABEL, is_label};
use super::ports::{check_number, check_number_or_name, port_name_errors};
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};
use sindri_cel::Quantity;

/// Returns all errors of a pod spec. `more_volumes` are volumes that the workload adds.
pub(crate) fn validate_spec(spec: &Value, at: &str, restart: &[&str], more_volumes: &[&str]) -> Vec<FieldError> {
    let (mut known, mut errors) = check_volumes(list(spec, "/volumes"), at, more_volumes.len());
    known.extend(more_volumes);
    errors.extend(check_tolerations(list(spec, "/tolerations"), at));
    let containers = list(spec, "/containers");
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let at = format!("{at}.containers[{index}]");
        errors.extend(check_container(container, &at, &known));
        let name = text(container, "/name");
        if names.contains(&name) && !name.is_empty() {
            errors.push(FieldError::duplicate(format!("{at}.name"), &json!(name).to_string()));
        }
        names.push(name);
    }
    let policy = text(spec, "/restartPolicy");
    if !restart.contains(&policy) && !policy.is_empty() {
        let supported: Vec<String> = restart.iter().map(|policy| format!("{policy:?}")).collect();
        errors.push(FieldError::unsupported(format!("{at}.restartPolicy"), &json!(policy), &supported));
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

fn check_tolerations(tolerations: &[Value], at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, toleration) in tolerations.iter().enumerate() {
        let (key, operator) = (text(toleration, "/key"), text(toleration, "/operator"));
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(format!("{at}.tolerations[{index}].operator"), &json!(operator), detail));
        }
    }
    errors
}

/// Checks volumes; returns the names of the valid ones, and the errors. Indices start after the volumes of claims.
fn check_volumes<'a>(volumes: &'a [Value], at: &str, claim_count: usize) -> (Vec<&'a str>, Vec<FieldError>) {
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    for (index, volume) in volumes.iter().enumerate() {
        let volume_errors = check_volume(volume, &names, &format!("{at}.volumes[{}]", claim_count + index));
        if volume_errors.is_empty() {
            names.push(text(volume, "/name"));
        }
        errors.extend(volume_errors);
    }
    (names, errors)
}

fn check_volume(volume: &Value, names: &[&str], at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let given: Vec<&&str> =
        SOURCES.iter().filter(|source| volume.get(**source).is_some_and(|value| !value.is_null())).collect();
    if let Some((first, others)) = given.split_first() {
        let detail = "may not specify more than 1 volume type";
        errors.extend(others.iter().map(|source| FieldError::forbidden(format!("{at}.{source}"), detail)));
        let required = match **first {
            "configMap" => Some("name"),
            "secret" => Some("secretName"),
            "persistentVolumeClaim" => Some("claimName"),
            "hostPath" => Some("path"),
            _ => None,
        };
        if let Some(field) = required.filter(|field| text(&volume[**first], &format!("/{field}")).is_empty()) {
            errors.push(FieldError::required(format!("{at}.{first}.{field}"), ""));
        }
    }
    let name = text(volume, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    } else if !is_label(name) {
        errors.push(FieldError::invalid(format!("{at}.name"), &json!(name), LABEL));
    } else if names.contains(&name) {
        errors.push(FieldError::duplicate(format!("{at}.name"), &json!(name).to_string()));
    }
    errors
}

fn check_container(container: &Value, at: &str, volumes: &[&str]) -> Vec<FieldError> {
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
    errors.extend(check_ports(list(container, "/ports"), at));
    for (index, variable) in list(container, "/env").iter().enumerate() {
        errors.extend(check_env_variable(variable, &format!("{at}.env[{index}]")));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(name).filter(|probe| !probe.is_null()) {
            errors.extend(check_probe(probe, &format!("{at}.{name}")));
        }
    }
    errors.extend(check_mounts(list(container, "/volumeMounts"), at, volumes));
    errors.extend(check_resources(container, at));
    errors
}

fn check_ports(ports: &[Value], at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("{at}.ports[{index}]");
        let name = text(port, "/name");
        if !name.is_empty() {
            let details = port_name_errors(name);
            if details.is_empty() && names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{at}.name"), &json!(name).to_string()));
            }
            errors.extend(details.iter().map(|detail| FieldError::invalid(format!("{at}.name"), &json!(name), detail)));
            names.push(name);
        }
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or_default() {
            0 => errors.push(FieldError::required(format!("{at}.containerPort"), "")),
            number => errors.extend(check_number(format!("{at}.containerPort"), number)),
        }
        let protocol = text(port, "/protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let supported = ["\"SCTP\"", "\"TCP\"", "\"UDP\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{at}.protocol"), &json!(protocol), &supported));
        }
    }
    errors
}

fn check_env_variable(variable: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(variable, "/name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let Some(from) = variable.get("valueFrom").filter(|from| !from.is_null()) else { return errors };
    let sources = from.as_object().map_or(0, |from| from.values().filter(|source| !source.is_null()).count());
    if sources == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(FieldError::invalid(format!("{at}.valueFrom"), &json!(""), detail));
    }
    if from.get("fieldRef").is_some_and(Value::is_object) && text(from, "/fieldRef/fieldPath").is_empty() {
        errors.push(FieldError::required(format!("{at}.valueFrom.fieldRef.fieldPath"), ""));
    }
    if !text(variable, "/value").is_empty() && sources > 0 {
        let detail = "may not be specified when `value` is not empty";
        errors.push(FieldError::invalid(format!("{at}.valueFrom"), &json!(""), detail));
    }
    errors
}

/// Probe handlers, in the order in which the real server checks them.
const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];

fn check_probe(probe: &Value, at: &str) -> Vec<FieldError> {
    let given: Vec<&&str> =
        HANDLERS.iter().filter(|handler| probe.get(**handler).is_some_and(|value| !value.is_null())).collect();
    let Some((first, others)) = given.split_first() else {
        return vec![FieldError::required(at, "must specify a handler type")];
    };
    let detail = "may not specify more than 1 handler type";
    let mut errors: Vec<FieldError> =
        others.iter().map(|handler| FieldError::forbidden(format!("{at}.{handler}"), detail)).collect();
    match **first {
        "exec" if list(&probe["exec"], "/command").is_empty() => {
            errors.push(FieldError::required(format!("{at}.exec.command"), ""));
        }
        handler @ ("httpGet" | "tcpSocket") => {
            let port = probe[handler].get("port").cloned().unwrap_or_default();
            errors.extend(check_number_or_name(&format!("{at}.{handler}.port"), &port));
        }
        _ => {}
    }
    errors
}

fn check_mounts(mounts: &[Value], at: &str, volumes: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut mount_paths: Vec<&str> = Vec::new();
    for (index, mount) in mounts.iter().enumerate() {
        let at = format!("{at}.volumeMounts[{index}]");
        let (name, mount_path) = (text(mount, "/name"), text(mount, "/mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        }
        if !volumes.contains(&name) {
            errors.push(FieldError::not_found(format!("{at}.name"), &json!(name)));
        }
        if mount_path.is_empty() {
            errors.push(FieldError::required(format!("{at}.mountPath"), ""));
        }
        if mount_paths.contains(&mount_path) {
            errors.push(FieldError::invalid(format!("{at}.mountPath"), &json!(mount_path), "must be unique"));
        }
        mount_paths.push(mount_path);
    }
    errors
}

fn check_resources(container: &Value, at: &str) -> Vec<FieldError> {
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
            errors.push(FieldError::invalid(format!("{at}.resources.requests"), &json!(request.canonical()), &detail));
        }
    }
    errors
}

/// Returns a warning for each variable that hides an earlier one of the same name.
fn hidden_variable_warnings(spec: &Value, at: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for part in ["initContainers", "containers"] {
        for (index, container) in list(spec, &format!("/{part}")).iter().enumerate() {
            let variables = list(container, "/env");
            for (number, variable) in variables.iter().enumerate() {
                let name = text(variable, "/name");
                if variables[..number].iter().any(|other| text(other, "/name") == name) {
                    warnings.push(format!(
                        "{at}.{part}[{index}].env[{number}]: hides previous definition of {name:?}, which may be dropped when using apply"
                    ));
                }
            }
        }
    }
    warnings
}

/// Returns the warnings for a pod spec: hidden variables, and duplicate ports.
pub(crate) fn warnings(spec: &Value, at: &str) -> Vec<String> {
    let mut seen: Vec<(&Value, String)> = Vec::new();
    let mut warnings = hidden_variable_warnings(spec, at);
    for part in ["initContainers", "containers"] {
        for (index, container) in list(spec, &format!("/{part}")).iter().enumerate() {
            for (number, port) in list(container, "/ports").iter().enumerate() {
                let path = format!("{at}.{part}[{index}].ports[{number}]");
                let same = |other: &Value| {
                    ["containerPort", "protocol", "hostIP", "hostPort"]
                        .iter()
                        .all(|part| other.get(part) == port.get(part))
                };
                for (_, other) in seen.iter().filter(|(other, _)| same(other)) {
                    warnings.push(format!("{path}: duplicate port definition with {other}"));
                }
                seen.push((port, path));
            }
        }
    }
    let mut named: Vec<(&str, &str)> = Vec::new();
    for (port, path) in &seen {
        let name = text(port, "/name");
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
