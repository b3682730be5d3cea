//! Validation of Services, and the warnings for them.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use crate::strategy::checks::names::{LABEL, is_label};
use crate::strategy::checks::ports::{check_number, check_number_or_name};

/// Returns all errors of a Service.
pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = array_at(object, "/spec/ports");
    let service_type = string_at(object, "/spec/type");
    let is_headless = string_at(object, "/spec/clusterIP") == "None";
    if ports.is_empty() && !is_headless && service_type != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    match service_type {
        "NodePort" | "LoadBalancer" if is_headless => {
            let detail = format!("may not be set to 'None' for {service_type} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!("None"), &detail));
        }
        "ExternalName" if string_at(object, "/spec/externalName").is_empty() => {
            errors.push(FieldError::required("spec.externalName", ""));
        }
        "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName" | "" => {}
        _ => {
            let supported =
                ["\"ClusterIP\"", "\"ExternalName\"", "\"LoadBalancer\"", "\"NodePort\""].map(str::to_owned);
            errors.push(FieldError::unsupported("spec.type", &object["spec"]["type"], &supported));
        }
    }
    errors.extend(check_ports(ports));
    let affinity = string_at(object, "/spec/sessionAffinity");
    if !matches!(affinity, "ClientIP" | "None") {
        let supported = ["\"ClientIP\"", "\"None\""].map(str::to_owned);
        errors.push(FieldError::unsupported("spec.sessionAffinity", &json!(affinity), &supported));
    }
    if object.pointer("/spec/allocateLoadBalancerNodePorts").is_some_and(Value::is_boolean)
        && service_type != "LoadBalancer"
    {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden("spec.allocateLoadBalancerNodePorts", detail));
    }
    errors.extend(check_traffic_policy(object));
    errors
}

fn check_ports(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = string_at(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if !name.is_empty() {
            if !is_label(name) {
                errors.push(FieldError::invalid(format!("{path}.name"), &json!(name), LABEL));
            }
            if names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &json!(name).to_string()));
            }
            names.push(name);
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
        errors.extend(check_number(format!("{path}.port"), number));
        let protocol = string_at(port, "/protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let supported = ["\"SCTP\"", "\"TCP\"", "\"UDP\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{path}.protocol"), &json!(protocol), &supported));
        }
        if let Some(target) = port.get("targetPort") {
            errors.extend(check_number_or_name(&format!("{path}.targetPort"), target));
        }
    }
    errors.extend(check_duplicate_ports(ports));
    errors
}

/// Checks that no two ports have the same number and protocol.
fn check_duplicate_ports(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let identity = |port: &Value| (port.get("port").cloned(), string_at(port, "/protocol").to_owned());
    for (index, port) in ports.iter().enumerate() {
        if ports[..index].iter().any(|other| identity(other) == identity(port)) {
            let formatted = format!(
                "{{\"Name\":\"\",\"Protocol\":{:?},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                string_at(port, "/protocol"),
                port.get("port").cloned().unwrap_or_default()
            );
            errors.push(FieldError::duplicate(format!("spec.ports[{index}]"), &formatted));
        }
    }
    errors
}

/// True if a service is reachable from outside the cluster.
pub(super) fn is_reachable_from_outside(spec: &Value) -> bool {
    match string_at(spec, "/type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !array_at(spec, "/externalIPs").is_empty(),
        _ => false,
    }
}

fn check_traffic_policy(object: &Value) -> Vec<FieldError> {
    let Some(spec) = object.get("spec") else { return Vec::new() };
    let policy = string_at(spec, "/externalTrafficPolicy");
    if !policy.is_empty() && !is_reachable_from_outside(spec) {
        let detail = "may only be set for externally-accessible services";
        return vec![FieldError::invalid("spec.externalTrafficPolicy", &json!(policy), detail)];
    }
    Vec::new()
}

/// Returns a warning for each field that a headless service ignores.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    if string_at(object, "/spec/clusterIP") != "None" || string_at(object, "/spec/type") != "ClusterIP" {
        return Vec::new();
    }
    let mut ignored = Vec::new();
    if !array_at(object, "/spec/externalIPs").is_empty() {
        ignored.push("externalIPs");
    }
    if string_at(object, "/spec/sessionAffinity") != "None" {
        ignored.push("SessionAffinity");
    }
    ignored.into_iter().map(|field| format!("spec.{field} is ignored for headless services")).collect()
}

/// Returns all errors of a status write.
pub(super) fn validate_status(object: &Value) -> Vec<FieldError> {
    let ingress = array_at(object, "/status/loadBalancer/ingress");
    if string_at(object, "/spec/type") != "LoadBalancer" && !ingress.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![FieldError::forbidden("status.loadBalancer.ingress", detail)];
    }
    let lacks_ip_mode =
        |address: &Value| !string_at(address, "/ip").is_empty() && string_at(address, "/ipMode").is_empty();
    let incomplete = ingress.iter().enumerate().filter(|(_, address)| lacks_ip_mode(address));
    incomplete
        .map(|(index, _)| {
            let detail = "must be specified when `ip` is set";
            FieldError::required(format!("status.loadBalancer.ingress[{index}].ipMode"), detail)
        })
        .collect()
}

/// Checks that the cluster IPs do not change.
pub(super) fn validate_update(live: &Value, object: &Value) -> Vec<FieldError> {
    let addresses = |service: &Value| service.pointer("/spec/clusterIPs").cloned().unwrap_or_default();
    let is_external = |service: &Value| string_at(service, "/spec/type") == "ExternalName";
    let (before, after) = (addresses(live), addresses(object));
    if before.is_null() || before == after || is_external(live) || is_external(object) {
        return Vec::new();
    }
    vec![FieldError::invalid("spec.clusterIPs[0]", &after, "may not change once set")]
}
