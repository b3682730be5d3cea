//! The rules of services.

use serde_json::{Value, json};

use super::names::{LABEL, is_label};
use super::ports::{check_number, number_or_name};
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) fn validate(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = list(object, "/spec/ports");
    let kind = text(object, "/spec/type");
    let headless = text(object, "/spec/clusterIP") == "None";
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    match kind {
        "NodePort" | "LoadBalancer" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!("None"), &why));
        }
        "ExternalName" if text(object, "/spec/externalName").is_empty() => {
            errors.push(FieldError::required("spec.externalName", ""));
        }
        "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName" | "" => {}
        _ => {
            let supported =
                ["\"ClusterIP\"", "\"ExternalName\"", "\"LoadBalancer\"", "\"NodePort\""].map(str::to_owned);
            errors.push(FieldError::unsupported("spec.type", &object["spec"]["type"], &supported));
        }
    }
    errors.extend(self::ports(ports));
    let affinity = text(object, "/spec/sessionAffinity");
    if !matches!(affinity, "ClientIP" | "None") {
        let supported = ["\"ClientIP\"", "\"None\""].map(str::to_owned);
        errors.push(FieldError::unsupported("spec.sessionAffinity", &json!(affinity), &supported));
    }
    if object.pointer("/spec/allocateLoadBalancerNodePorts").is_some_and(Value::is_boolean) && kind != "LoadBalancer" {
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.push(FieldError::forbidden("spec.allocateLoadBalancerNodePorts", why));
    }
    errors.extend(traffic(object));
    errors
}

fn ports(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = text(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        } else if !name.is_empty() {
            if !is_label(name) {
                errors.push(FieldError::invalid(format!("{at}.name"), &json!(name), LABEL));
            }
            if names.contains(&name) {
                errors.push(FieldError::duplicate(format!("{at}.name"), &json!(name).to_string()));
            }
            names.push(name);
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
        errors.extend(check_number(format!("{at}.port"), number));
        let protocol = text(port, "/protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let supported = ["\"SCTP\"", "\"TCP\"", "\"UDP\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{at}.protocol"), &json!(protocol), &supported));
        }
        if let Some(target) = port.get("targetPort") {
            errors.extend(number_or_name(&format!("{at}.targetPort"), target));
        }
    }
    errors.extend(twice(ports));
    errors
}

/// Ports with the number and the protocol of another.
fn twice(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let identity = |port: &Value| (port.get("port").cloned(), text(port, "/protocol").to_owned());
    for (index, port) in ports.iter().enumerate() {
        if ports[..index].iter().any(|other| identity(other) == identity(port)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{:?},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                text(port, "/protocol"),
                port.get("port").cloned().unwrap_or_default()
            );
            errors.push(FieldError::duplicate(format!("spec.ports[{index}]"), &shown));
        }
    }
    errors
}

/// Whether something outside of the cluster can reach it.
pub(crate) fn is_reachable_from_outside(spec: &Value) -> bool {
    match text(spec, "/type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !list(spec, "/externalIPs").is_empty(),
        _ => false,
    }
}

fn traffic(object: &Value) -> Vec<FieldError> {
    let Some(spec) = object.get("spec") else { return Vec::new() };
    let policy = text(spec, "/externalTrafficPolicy");
    if !policy.is_empty() && !is_reachable_from_outside(spec) {
        let why = "may only be set for externally-accessible services";
        return vec![FieldError::invalid("spec.externalTrafficPolicy", &json!(policy), why)];
    }
    Vec::new()
}

/// What a headless service says in vain.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    if text(object, "/spec/clusterIP") != "None" || text(object, "/spec/type") != "ClusterIP" {
        return Vec::new();
    }
    let mut ignored = Vec::new();
    if !list(object, "/spec/externalIPs").is_empty() {
        ignored.push("externalIPs");
    }
    if text(object, "/spec/sessionAffinity") != "None" {
        ignored.push("SessionAffinity");
    }
    ignored.into_iter().map(|field| format!("spec.{field} is ignored for headless services")).collect()
}

/// What is wrong with the status that somebody writes.
pub(super) fn status(object: &Value) -> Vec<FieldError> {
    let ingress = list(object, "/status/loadBalancer/ingress");
    if text(object, "/spec/type") != "LoadBalancer" && !ingress.is_empty() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![FieldError::forbidden("status.loadBalancer.ingress", why)];
    }
    let says_how = |address: &Value| !text(address, "/ip").is_empty() && text(address, "/ipMode").is_empty();
    let unclear = ingress.iter().enumerate().filter(|(_, address)| says_how(address));
    unclear
        .map(|(index, _)| {
            let why = "must be specified when `ip` is set";
            FieldError::required(format!("status.loadBalancer.ingress[{index}].ipMode"), why)
        })
        .collect()
}

pub(super) fn validate_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let addresses = |service: &Value| service.pointer("/spec/clusterIPs").cloned().unwrap_or_default();
    let is_external = |service: &Value| text(service, "/spec/type") == "ExternalName";
    let (known, asked) = (addresses(live), addresses(object));
    if known.is_null() || known == asked || is_external(live) || is_external(object) {
        return Vec::new();
    }
    vec![FieldError::invalid("spec.clusterIPs[0]", &asked, "may not change once set")]
}
