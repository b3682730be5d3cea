//! Validates Ingresses and NetworkPolicies.

use serde_json::{Value, json};

use super::names::{LABEL, SUBDOMAIN, is_label};
use super::ports::{check_number, port_name_errors};
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) fn validate_ingress(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = list(object, "/spec/rules");
    let backend = object.pointer("/spec/defaultBackend").filter(|backend| !backend.is_null());
    if rules.is_empty() && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let rules = object.pointer("/spec/rules").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec", &rules, detail));
    }
    if let Some(backend) = backend {
        errors.extend(check_backend(backend, "spec.defaultBackend"));
    }
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(check_rule(rule, &format!("spec.rules[{index}]")));
    }
    errors
}

fn check_rule(rule: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let host = text(rule, "/host");
    if !host.is_empty() && !host.contains('*') && !host.split('.').all(is_label) {
        errors.push(FieldError::invalid(format!("{at}.host"), &json!(host), SUBDOMAIN));
    }
    let Some(http) = rule.get("http").filter(|http| !http.is_null()) else { return errors };
    let paths = list(http, "/paths");
    if paths.is_empty() {
        errors.push(FieldError::required(format!("{at}.http.paths"), ""));
    }
    for (index, path) in paths.iter().enumerate() {
        errors.extend(check_path(path, &format!("{at}.http.paths[{index}]")));
    }
    errors
}

fn check_path(path: &Value, at: &str) -> Vec<FieldError> {
    let (path_type, url_path) = (text(path, "/pathType"), text(path, "/path"));
    if path.get("pathType").is_none_or(Value::is_null) {
        return vec![FieldError::required(format!("{at}.pathType"), "pathType must be specified")];
    }
    let mut errors = Vec::new();
    let is_absolute = url_path.starts_with('/') || path_type == "ImplementationSpecific" && url_path.is_empty();
    match path_type {
        "Exact" | "Prefix" | "ImplementationSpecific" if !is_absolute => {
            errors.push(FieldError::invalid(format!("{at}.path"), &json!(url_path), "must be an absolute path"));
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => {}
        _ => {
            let supported = ["\"Exact\"", "\"ImplementationSpecific\"", "\"Prefix\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{at}.pathType"), &json!(path_type), &supported));
        }
    }
    let backend = path.get("backend").cloned().unwrap_or_default();
    errors.extend(check_backend(&backend, &format!("{at}.backend")));
    errors
}

fn check_backend(backend: &Value, at: &str) -> Vec<FieldError> {
    let has = |name: &str| backend.get(name).is_some_and(|part| !part.is_null());
    match (has("resource"), has("service")) {
        (true, true) => vec![FieldError::invalid(at, &json!(""), "cannot set both resource and service backends")],
        (true, false) => Vec::new(),
        (false, true) => check_service_backend(&backend["service"], at),
        (false, false) => vec![FieldError::invalid(at, &json!(""), "resource or service backend is required")],
    }
}

fn check_service_backend(service: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(service, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.service.name"), ""));
    } else if !is_label(name) {
        errors.push(FieldError::invalid(format!("{at}.service.name"), &json!(name), LABEL));
    }
    let (port_name, number) = (text(service, "/port/name"), service.pointer("/port/number").and_then(Value::as_i64));
    match (port_name, number.filter(|number| *number != 0)) {
        ("", None) => errors.push(FieldError::required(at, "port name or number is required")),
        ("", Some(number)) => errors.extend(check_number(format!("{at}.service.port.number"), number)),
        (_, Some(_)) => errors.push(FieldError::invalid(at, &json!(""), "cannot set both port name & port number")),
        (name, None) => errors.extend(
            port_name_errors(name)
                .iter()
                .map(|detail| FieldError::invalid(format!("{at}.service.port.name"), &json!(name), detail)),
        ),
    }
    errors
}

pub(super) fn validate_network_policy(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(object, &format!("/spec/{direction}")).iter().enumerate() {
            let at = format!("spec.{direction}[{index}]");
            for (index, port) in list(rule, "/ports").iter().enumerate() {
                errors.extend(check_policy_port(port, &format!("{at}.ports[{index}]")));
            }
            for (index, peer) in list(rule, &format!("/{peers}")).iter().enumerate() {
                errors.extend(check_peer(peer, &format!("{at}.{peers}[{index}]")));
            }
        }
    }
    let policy_types = list(object, "/spec/policyTypes");
    if policy_types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid("spec.policyTypes", &json!(policy_types), detail));
        return errors;
    }
    for (index, policy_type) in policy_types.iter().enumerate() {
        if !matches!(policy_type.as_str(), Some("Ingress" | "Egress")) {
            let supported = ["\"Ingress\"", "\"Egress\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("spec.policyTypes[{index}]"), policy_type, &supported));
        }
    }
    errors
}

fn check_policy_port(port: &Value, at: &str) -> Vec<FieldError> {
    match port.get("port") {
        Some(Value::Number(number)) => {
            check_number(format!("{at}.port"), number.as_i64().unwrap_or_default()).into_iter().collect()
        }
        Some(Value::String(name)) => port_name_errors(name)
            .iter()
            .map(|detail| FieldError::invalid(format!("{at}.port"), &json!(name), detail))
            .collect(),
        _ => Vec::new(),
    }
}

fn check_peer(peer: &Value, at: &str) -> Vec<FieldError> {
    let has = |name: &str| peer.get(name).is_some_and(|part| !part.is_null());
    let has_selector = has("podSelector") || has("namespaceSelector");
    let mut errors = Vec::new();
    if has("ipBlock") && text(peer, "/ipBlock/cidr").is_empty() {
        errors.push(FieldError::required(format!("{at}.ipBlock.cidr"), ""));
    }
    if !has_selector && !has("ipBlock") {
        errors.push(FieldError::required(at, "must specify a peer"));
    } else if has_selector && has("ipBlock") {
        errors.push(FieldError::forbidden(at, "may not specify both ipBlock and another peer"));
    }
    errors
}
