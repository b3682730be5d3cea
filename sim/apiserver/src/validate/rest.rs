//! The rules of the other built-in kinds that people break: bindings, claims, ingresses, autoscalers, budgets.

use serde_json::{Value, json};

use crate::error::FieldError;
use crate::pointer::{list, text};

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
    let rules = list(object, "/rules").iter().enumerate();
    let without = rules.filter(|(_, rule)| list(rule, "/verbs").is_empty());
    let why = "verbs must contain at least one value";
    without.map(|(index, _)| FieldError::required(format!("rules[{index}].verbs"), why)).collect()
}

pub(super) fn claim(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if list(object, "/spec/accessModes").is_empty() {
        errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if object.pointer("/spec/resources/requests/storage").is_none() {
        errors.push(FieldError::required("spec.resources[storage]", ""));
    }
    errors
}

pub(super) fn claim_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let fixed = |claim: &Value| {
        let mut spec = claim.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        spec.remove("resources");
        spec.remove("volumeAttributesClassName");
        spec
    };
    if fixed(live) == fixed(object) {
        return Vec::new();
    }
    let why =
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    vec![FieldError::forbidden("spec", why)]
}

pub(super) fn ingress(object: &Value) -> Vec<FieldError> {
    let none = list(object, "/spec/rules").is_empty() && object.pointer("/spec/defaultBackend").is_none();
    let why = "either `defaultBackend` or `rules` must be specified";
    if none { vec![FieldError::invalid("spec", &Value::Null, why)] } else { Vec::new() }
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

pub(super) fn namespace(object: &Value) -> Vec<FieldError> {
    let phase = text(object, "/status/phase");
    if phase == "Terminating" && !crate::pointer::is_deleting(object) {
        let why = "may only be 'Active' if `deletionTimestamp` is empty";
        return vec![FieldError::invalid("status.Phase", &json!(phase), why)];
    }
    Vec::new()
}

pub(super) fn event(object: &Value) -> Vec<FieldError> {
    let (own, about) = (text(object, "/metadata/namespace"), text(object, "/involvedObject/namespace"));
    if object.get("involvedObject").is_none() || own == about || about.is_empty() && own == "default" {
        return Vec::new();
    }
    vec![FieldError::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace")]
}

pub(super) fn service_change(live: &Value, object: &Value) -> Vec<FieldError> {
    let addresses = |service: &Value| service.pointer("/spec/clusterIPs").cloned().unwrap_or_default();
    let is_external = |service: &Value| text(service, "/spec/type") == "ExternalName";
    let (known, asked) = (addresses(live), addresses(object));
    if known.is_null() || known == asked || is_external(live) || is_external(object) {
        return Vec::new();
    }
    vec![FieldError::invalid("spec.clusterIPs[0]", &asked, "may not change once set")]
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
