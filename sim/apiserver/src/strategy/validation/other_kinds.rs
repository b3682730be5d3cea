//! The rules of the other built-in kinds that people break: bindings, roles, autoscalers, budgets.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) fn binding(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(object, "/roleRef/kind");
    if !matches!(kind, "Role" | "ClusterRole") {
        let supported = ["\"Role\"", "\"ClusterRole\""].map(str::to_owned);
        errors.push(FieldError::unsupported("roleRef.kind", &json!(kind), &supported));
    }
    if text(object, "/roleRef/name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (index, subject) in list(object, "/subjects").iter().enumerate() {
        let kind = text(subject, "/kind");
        if !matches!(kind, "ServiceAccount" | "User" | "Group") {
            let supported = ["\"ServiceAccount\"", "\"User\"", "\"Group\""].map(str::to_owned);
            errors.push(FieldError::unsupported(format!("subjects[{index}].kind"), &json!(kind), &supported));
        }
        if text(subject, "/name").is_empty() {
            errors.push(FieldError::required(format!("subjects[{index}].name"), ""));
        }
    }
    errors
}

pub(super) fn binding_change(live: &Value, object: &Value) -> Vec<FieldError> {
    if live.get("roleRef") == object.get("roleRef") {
        return Vec::new();
    }
    let part = |name: &str| json!(text(object, &format!("/roleRef/{name}")));
    let shown = format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", part("apiGroup"), part("kind"), part("name"));
    vec![FieldError::invalid_text("roleRef", &shown, "cannot change roleRef")]
}

pub(super) fn role(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in list(object, "/rules").iter().enumerate() {
        let needed = [
            ("verbs", "verbs must contain at least one value"),
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ];
        // A rule about paths names no resources.
        let count = if list(rule, "/nonResourceURLs").is_empty() { needed.len() } else { 1 };
        for (field, why) in needed.iter().take(count).filter(|(field, _)| list(rule, &format!("/{field}")).is_empty()) {
            errors.push(FieldError::required(format!("rules[{index}].{field}"), why));
        }
    }
    errors
}

pub(super) fn autoscaler(object: &Value) -> Vec<FieldError> {
    let number = |name: &str| object["spec"].get(name).and_then(Value::as_i64).unwrap_or_default();
    let (most, least) = (number("maxReplicas"), number("minReplicas"));
    let mut errors = Vec::new();
    if most < 1 {
        errors.push(FieldError::invalid("spec.maxReplicas", &json!(most), "must be greater than 0"));
    }
    if most < least {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &json!(most), why));
    }
    let reference = |name: &str| text(object, &format!("/spec/scaleTargetRef/{name}"));
    for field in ["kind", "name"] {
        if reference(field).is_empty() {
            errors.push(FieldError::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    if reference("apiVersion").is_empty() {
        let why = "apiVersion must specify API group";
        errors.push(FieldError::invalid("spec.scaleTargetRef.apiVersion", &json!(""), why));
    }
    errors
}

pub(super) fn budget(object: &Value) -> Vec<FieldError> {
    let field = |name: &str| object["spec"].get(name).filter(|value| !value.is_null());
    let (Some(least), Some(most)) = (field("minAvailable"), field("maxUnavailable")) else { return Vec::new() };
    let shown = format!(
        "{{\"MinAvailable\":{least},\"Selector\":{},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{}}}",
        field("selector").unwrap_or(&Value::Null),
        field("unhealthyPodEvictionPolicy").unwrap_or(&Value::Null)
    );
    vec![FieldError::invalid_text("spec", &shown, "minAvailable and maxUnavailable cannot be both set")]
}

pub(super) fn namespace_status(object: &Value) -> Vec<FieldError> {
    let phase = text(object, "/status/phase");
    let (expected, why) = if crate::object::fields::is_deleting(object) {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase == expected { Vec::new() } else { vec![FieldError::invalid("status.Phase", &json!(phase), why)] }
}

pub(super) fn event(object: &Value) -> Vec<FieldError> {
    let (own, about) = (text(object, "/metadata/namespace"), text(object, "/involvedObject/namespace"));
    if object.get("involvedObject").is_none() || own == about || about.is_empty() && own == "default" {
        return Vec::new();
    }
    vec![FieldError::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace")]
}

pub(super) fn job_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["completions", "selector", "template", "completionMode"] {
        let (known, asked) = (live["spec"].get(field), object["spec"].get(field));
        if known != asked {
            let value = asked.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(format!("spec.{field}"), &value, "field is immutable"));
        }
    }
    errors
}
