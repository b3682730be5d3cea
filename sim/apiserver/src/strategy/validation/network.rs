//! The rules of ingresses and network policies.

use serde_json::{Value, json};

use super::names::{LABEL, SUBDOMAIN, is_label};
use super::ports::{check_number, name_mistakes};
use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) fn ingress(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = list(object, "/spec/rules");
    let backend = object.pointer("/spec/defaultBackend").filter(|backend| !backend.is_null());
    if rules.is_empty() && backend.is_none() {
        let why = "either `defaultBackend` or `rules` must be specified";
        let rules = object.pointer("/spec/rules").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("spec", &rules, why));
    }
    if let Some(backend) = backend {
        errors.extend(self::backend(backend, "spec.defaultBackend"));
    }
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(self::rule(rule, &format!("spec.rules[{index}]")));
    }
    errors
}

fn rule(rule: &Value, at: &str) -> Vec<FieldError> {
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
        errors.extend(self::path(path, &format!("{at}.http.paths[{index}]")));
    }
    errors
}

fn path(path: &Value, at: &str) -> Vec<FieldError> {
    let (kind, own) = (text(path, "/pathType"), text(path, "/path"));
    if path.get("pathType").is_none_or(Value::is_null) {
        return vec![FieldError::required(format!("{at}.pathType"), "pathType must be specified")];
    }
    let mut errors = Vec::new();
    let absolute = own.starts_with('/') || kind == "ImplementationSpecific" && own.is_empty();
    match kind {
        "Exact" | "Prefix" | "ImplementationSpecific" if !absolute => {
            errors.push(FieldError::invalid(format!("{at}.path"), &json!(own), "must be an absolute path"));
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => {}
        _ => {
            let supported = ["\"Exact\"", "\"ImplementationSpecific\"", "\"Prefix\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{at}.pathType"), &json!(kind), &supported));
        }
    }
    let backend = path.get("backend").cloned().unwrap_or_default();
    errors.extend(self::backend(&backend, &format!("{at}.backend")));
    errors
}

fn backend(backend: &Value, at: &str) -> Vec<FieldError> {
    let has = |name: &str| backend.get(name).is_some_and(|part| !part.is_null());
    match (has("resource"), has("service")) {
        (true, true) => vec![FieldError::invalid(at, &json!(""), "cannot set both resource and service backends")],
        (true, false) => Vec::new(),
        (false, true) => service_backend(&backend["service"], at),
        (false, false) => vec![FieldError::invalid(at, &json!(""), "resource or service backend is required")],
    }
}

fn service_backend(service: &Value, at: &str) -> Vec<FieldError> {
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
            name_mistakes(name)
                .iter()
                .map(|why| FieldError::invalid(format!("{at}.service.port.name"), &json!(name), why)),
        ),
    }
    errors
}

pub(super) fn policy(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(object, &format!("/spec/{direction}")).iter().enumerate() {
            let at = format!("spec.{direction}[{index}]");
            for (index, port) in list(rule, "/ports").iter().enumerate() {
                errors.extend(policy_port(port, &format!("{at}.ports[{index}]")));
            }
            for (index, peer) in list(rule, &format!("/{peers}")).iter().enumerate() {
                errors.extend(self::peer(peer, &format!("{at}.{peers}[{index}]")));
            }
        }
    }
    let kinds = list(object, "/spec/policyTypes");
    if kinds.len() > 2 {
        let why = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid("spec.policyTypes", &json!(kinds), why));
        return errors;
    }
    for (index, kind) in kinds.iter().enumerate() {
        if !matches!(kind.as_str(), Some("Ingress" | "Egress")) {
            let supported = ["\"Ingress\"", "\"Egress\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("spec.policyTypes[{index}]"), kind, &supported));
        }
    }
    errors
}

fn policy_port(port: &Value, at: &str) -> Vec<FieldError> {
    match port.get("port") {
        Some(Value::Number(number)) => {
            check_number(format!("{at}.port"), number.as_i64().unwrap_or_default()).into_iter().collect()
        }
        Some(Value::String(name)) => {
            name_mistakes(name).iter().map(|why| FieldError::invalid(format!("{at}.port"), &json!(name), why)).collect()
        }
        _ => Vec::new(),
    }
}

fn peer(peer: &Value, at: &str) -> Vec<FieldError> {
    let has = |name: &str| peer.get(name).is_some_and(|part| !part.is_null());
    let selects = has("podSelector") || has("namespaceSelector");
    let mut errors = Vec::new();
    if has("ipBlock") && text(peer, "/ipBlock/cidr").is_empty() {
        errors.push(FieldError::required(format!("{at}.ipBlock.cidr"), ""));
    }
    if !selects && !has("ipBlock") {
        errors.push(FieldError::required(at, "must specify a peer"));
    } else if selects && has("ipBlock") {
        errors.push(FieldError::forbidden(at, "may not specify both ipBlock and another peer"));
    }
    errors
}
