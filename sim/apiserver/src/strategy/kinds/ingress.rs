//! Ingress.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use crate::strategy::Strategy;
use crate::strategy::checks::names::{LABEL, SUBDOMAIN, is_label};
use crate::strategy::checks::ports::{check_number, port_name_errors};

pub(super) struct Ingress;

impl Strategy for Ingress {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let rules = array_at(object, "/spec/rules");
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
}

fn check_rule(rule: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let host = string_at(rule, "/host");
    if !host.is_empty() && !host.contains('*') && !host.split('.').all(is_label) {
        errors.push(FieldError::invalid(format!("{path}.host"), &json!(host), SUBDOMAIN));
    }
    let Some(http) = rule.get("http").filter(|http| !http.is_null()) else { return errors };
    let paths = array_at(http, "/paths");
    if paths.is_empty() {
        errors.push(FieldError::required(format!("{path}.http.paths"), ""));
    }
    for (index, http_path) in paths.iter().enumerate() {
        errors.extend(check_path(http_path, &format!("{path}.http.paths[{index}]")));
    }
    errors
}

fn check_path(http_path: &Value, path: &str) -> Vec<FieldError> {
    let (path_type, url_path) = (string_at(http_path, "/pathType"), string_at(http_path, "/path"));
    if http_path.get("pathType").is_none_or(Value::is_null) {
        return vec![FieldError::required(format!("{path}.pathType"), "pathType must be specified")];
    }
    let mut errors = Vec::new();
    let is_absolute = url_path.starts_with('/') || path_type == "ImplementationSpecific" && url_path.is_empty();
    match path_type {
        "Exact" | "Prefix" | "ImplementationSpecific" if !is_absolute => {
            errors.push(FieldError::invalid(format!("{path}.path"), &json!(url_path), "must be an absolute path"));
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => {}
        _ => {
            let supported = ["\"Exact\"", "\"ImplementationSpecific\"", "\"Prefix\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("{path}.pathType"), &json!(path_type), &supported));
        }
    }
    let backend = http_path.get("backend").cloned().unwrap_or_default();
    errors.extend(check_backend(&backend, &format!("{path}.backend")));
    errors
}

fn check_backend(backend: &Value, path: &str) -> Vec<FieldError> {
    let has = |name: &str| backend.get(name).is_some_and(|part| !part.is_null());
    match (has("resource"), has("service")) {
        (true, true) => vec![FieldError::invalid(path, &json!(""), "cannot set both resource and service backends")],
        (true, false) => Vec::new(),
        (false, true) => check_service_backend(&backend["service"], path),
        (false, false) => vec![FieldError::invalid(path, &json!(""), "resource or service backend is required")],
    }
}

fn check_service_backend(service: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = string_at(service, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.service.name"), ""));
    } else if !is_label(name) {
        errors.push(FieldError::invalid(format!("{path}.service.name"), &json!(name), LABEL));
    }
    let (port_name, number) =
        (string_at(service, "/port/name"), service.pointer("/port/number").and_then(Value::as_i64));
    match (port_name, number.filter(|number| *number != 0)) {
        ("", None) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", Some(number)) => errors.extend(check_number(format!("{path}.service.port.number"), number)),
        (_, Some(_)) => errors.push(FieldError::invalid(path, &json!(""), "cannot set both port name & port number")),
        (name, None) => errors.extend(
            port_name_errors(name)
                .iter()
                .map(|detail| FieldError::invalid(format!("{path}.service.port.name"), &json!(name), detail)),
        ),
    }
    errors
}
