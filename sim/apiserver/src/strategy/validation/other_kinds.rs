//! Validates other built-in kinds: roles and their bindings, autoscalers, disruption budgets, events, namespaces, job changes.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{list, text};

pub(super) fn validate_role_binding(object: &Value) -> Vec<FieldError> {
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

pub(super) fn validate_role_binding_change(live: &Value, object: &Value) -> Vec<FieldError> {
    if live.get("roleRef") == object.get("roleRef") {
        return Vec::new();
    }
    let part = |name: &str| json!(text(object, &format!("/roleRef/{name}")));
    let formatted =
        format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", part("apiGroup"), part("kind"), part("name"));
    vec![FieldError::invalid_text("roleRef", &formatted, "cannot change roleRef")]
}

pub(super) fn validate_role(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in list(object, "/rules").iter().enumerate() {
        let required = [
            ("verbs", "verbs must contain at least one value"),
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ];
        // A rule for non-resource URLs needs only verbs.
        let count = if list(rule, "/nonResourceURLs").is_empty() { required.len() } else { 1 };
        for (field, detail) in
            required.iter().take(count).filter(|(field, _)| list(rule, &format!("/{field}")).is_empty())
        {
            errors.push(FieldError::required(format!("rules[{index}].{field}"), detail));
        }
    }
    errors
}

pub(super) fn validate_autoscaler(object: &Value) -> Vec<FieldError> {
    let number = |name: &str| object["spec"].get(name).and_then(Value::as_i64).unwrap_or_default();
    let (max, min) = (number("maxReplicas"), number("minReplicas"));
    let mut errors = Vec::new();
    if max < 1 {
        errors.push(FieldError::invalid("spec.maxReplicas", &json!(max), "must be greater than 0"));
    }
    if max < min {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &json!(max), detail));
    }
    let reference = |name: &str| text(object, &format!("/spec/scaleTargetRef/{name}"));
    for field in ["kind", "name"] {
        if reference(field).is_empty() {
            errors.push(FieldError::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    if reference("apiVersion").is_empty() {
        let detail = "apiVersion must specify API group";
        errors.push(FieldError::invalid("spec.scaleTargetRef.apiVersion", &json!(""), detail));
    }
    errors
}

pub(super) fn validate_disruption_budget(object: &Value) -> Vec<FieldError> {
    let field = |name: &str| object["spec"].get(name).filter(|value| !value.is_null());
    let (Some(min_available), Some(max_unavailable)) = (field("minAvailable"), field("maxUnavailable")) else {
        return Vec::new();
    };
    let formatted = format!(
        "{{\"MinAvailable\":{min_available},\"Selector\":{},\"MaxUnavailable\":{max_unavailable},\"UnhealthyPodEvictionPolicy\":{}}}",
        field("selector").unwrap_or(&Value::Null),
        field("unhealthyPodEvictionPolicy").unwrap_or(&Value::Null)
    );
    vec![FieldError::invalid_text("spec", &formatted, "minAvailable and maxUnavailable cannot be both set")]
}

pub(super) fn validate_namespace_status(object: &Value) -> Vec<FieldError> {
    let phase = text(object, "/status/phase");
    let (expected, detail) = if crate::object::fields::is_deleting(object) {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase == expected { Vec::new() } else { vec![FieldError::invalid("status.Phase", &json!(phase), detail)] }
}

pub(super) fn validate_event(object: &Value) -> Vec<FieldError> {
    let (namespace, object_namespace) =
        (text(object, "/metadata/namespace"), text(object, "/involvedObject/namespace"));
    if object.get("involvedObject").is_none()
        || namespace == object_namespace
        || object_namespace.is_empty() && namespace == "default"
    {
        return Vec::new();
    }
    vec![FieldError::invalid("involvedObject.namespace", &json!(object_namespace), "does not match event.namespace")]
}

pub(super) fn validate_job_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["completions", "selector", "template", "completionMode"] {
        let (before, after) = (live["spec"].get(field), object["spec"].get(field));
        if before != after {
            let value = after.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(format!("spec.{field}"), &value, "field is immutable"));
        }
    }
    errors
}
