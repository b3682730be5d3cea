//! CertificateSigningRequest.

use serde_json::{Value, json};

use crate::encoding::certificates::{check_certificate, check_request};
use crate::http::error::ApiError;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, format_timestamp, string_at};
use crate::strategy::checks::names::{label_name_errors, path_segment_name_errors, subdomain_name_errors};
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

/// Usages of a key, in the order in which errors list them.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Conditions that decide about a request. They cannot be removed, and are always true.
const DECISIONS: [&str; 3] = ["Approved", "Denied", "Failed"];
/// Signer of the first version of the API.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i64 = 600;
const CONDITIONS: &str = "status.conditions";

pub(super) struct CertificateSigningRequest;

impl Strategy for CertificateSigningRequest {
    fn name_errors(&self, name: &str) -> Vec<String> {
        path_segment_name_errors(name)
    }

    /// Records the requester in the spec.
    fn prepare_for_create(&self, context: &mut PrepareContext<'_>, object: &mut Value) {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
        for field in ["username", "uid", "groups", "extra"] {
            spec.remove(field);
        }
        spec.extend(context.user.to_value().as_object().cloned().unwrap_or_default());
    }

    /// Sets missing times of conditions, and keeps the decisions in a write to `/status`.
    fn prepare_for_update(
        &self,
        context: &mut PrepareContext<'_>,
        live: &Value,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        let known = array_at(live, "/status/conditions");
        let timestamp = json!(format_timestamp(context.now));
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        let Some(conditions) = conditions else { return Ok(()) };
        if context.is_status {
            DECISIONS[..2].iter().for_each(|decision| restore_condition(decision, known, conditions));
        }
        for condition in conditions {
            let same = known.iter().find(|known| {
                ["type", "status"].iter().all(|field| known.get(field) == condition.get(field))
                    && known.get("lastTransitionTime").is_some_and(Value::is_string)
            });
            let since = same.map_or(&timestamp, |same| &same["lastTransitionTime"]);
            for (field, value) in [("lastUpdateTime", &timestamp), ("lastTransitionTime", since)] {
                if condition.get(field).is_none_or(Value::is_null) {
                    condition[field] = value.clone();
                }
            }
        }
        Ok(())
    }

    fn keeps_spec(&self) -> bool {
        true
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let request = object["spec"].get("request").cloned().unwrap_or_default();
        if let Err(reason) = check_request(request.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("spec.request", &request, &reason));
        }
        errors.extend(check_usages(array_at(object, "/spec/usages")));
        errors.extend(check_signer(string_at(object, "/spec/signerName")));
        let expiration = object["spec"].get("expirationSeconds").filter(|seconds| seconds.is_i64());
        if let Some(seconds) = expiration.filter(|seconds| seconds.as_i64() < Some(EXPIRATION_SECONDS_MIN)) {
            let detail = "may not specify a duration less than 600 seconds (10 minutes)";
            errors.push(FieldError::invalid("spec.expirationSeconds", seconds, detail));
        }
        errors.extend(check_conditions(array_at(object, "/status/conditions")));
        if let Err(reason) = check_certificate(string_at(object, "/status/certificate")) {
            errors.push(FieldError::invalid("status.certificate", &json!("<certificate data>"), &reason));
        }
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let mut errors = self.validate_approval(live, object);
        for decision in &DECISIONS[..2] {
            let (before, after) = (of_type(live, decision), of_type(object, decision));
            if after.len() > before.len() {
                let detail = format!("updates may not add a condition of type {decision:?}");
                errors.push(FieldError::forbidden(CONDITIONS, &detail));
            }
        }
        let before = string_at(live, "/status/certificate");
        if !before.is_empty() && before != string_at(object, "/status/certificate") {
            let detail = "updates may not modify existing certificate content";
            errors.push(FieldError::forbidden("status.certificate", detail));
        }
        errors
    }

    fn validate_approval(&self, live: &Value, object: &Value) -> Vec<FieldError> {
        let removed =
            DECISIONS.iter().filter(|decision| of_type(object, decision).len() < of_type(live, decision).len());
        let detail = |decision: &&str| format!("updates may not remove a condition of type {decision:?}");
        removed.map(|decision| FieldError::forbidden(CONDITIONS, &detail(decision))).collect()
    }
}

fn of_type<'a>(object: &'a Value, condition_type: &str) -> Vec<&'a Value> {
    array_at(object, "/status/conditions").iter().filter(|condition| condition["type"] == condition_type).collect()
}

/// Restores the live conditions of a type, unless some were added or removed.
fn restore_condition(condition_type: &str, known: &[Value], conditions: &mut [Value]) {
    let known = known.iter().filter(|condition| condition["type"] == condition_type);
    let requested = conditions.iter_mut().filter(|condition| condition["type"] == condition_type);
    let (known, requested): (Vec<&Value>, Vec<&mut Value>) = (known.collect(), requested.collect());
    if known.len() == requested.len() {
        known.into_iter().zip(requested).for_each(|(known, requested)| requested.clone_from(known));
    }
}

fn check_usages(usages: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if usages.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let field = |index: usize| format!("spec.usages[{index}]");
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(&usage.as_str().unwrap_or_default()) {
            let supported: Vec<String> = USAGES.iter().map(|usage| format!("{usage:?}")).collect();
            errors.push(FieldError::unsupported(field(index), usage, &supported));
        }
    }
    let repeated = usages.iter().enumerate().filter(|(index, usage)| usages[..*index].contains(usage));
    errors.extend(repeated.map(|(index, usage)| FieldError::duplicate(field(index), &usage.to_string())));
    errors
}

/// Checks a signer's name: a domain, and a path.
fn check_signer(signer: &str) -> Vec<FieldError> {
    let invalid = |value: &str, detail: &str| FieldError::invalid("spec.signerName", &json!(value), detail);
    if signer.is_empty() {
        return vec![FieldError::required("spec.signerName", "")];
    }
    if signer == LEGACY_SIGNER {
        return vec![invalid(signer, "the legacy signerName is not allowed via this API version")];
    }
    let Some((domain, path)) = signer.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![invalid(signer, detail)];
    };
    let check = |part: &str, rule: fn(&str) -> Vec<String>| {
        let broken = part.split('.').map(|label| (label, rule(label))).find(|(_, errors)| !errors.is_empty());
        let (label, errors) = broken.unwrap_or_default();
        let detail = |error: String| invalid(part, &format!("validating label {label:?}: {error}"));
        errors.into_iter().map(detail).collect::<Vec<_>>()
    };
    let mut errors = check(domain, label_name_errors);
    if !domain.contains('.') {
        errors.push(invalid(domain, "should be a domain with at least two segments separated by dots"));
    }
    errors.extend(check(path, subdomain_name_errors));
    errors
}

fn check_conditions(conditions: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let seen = |index: usize, wanted: &str| conditions[..index].iter().any(|condition| condition["type"] == wanted);
    for (index, condition) in conditions.iter().enumerate() {
        let (condition_type, status) = (string_at(condition, "/type"), string_at(condition, "/status"));
        let field = |name: &str| format!("{CONDITIONS}[{index}].{name}");
        if condition_type.is_empty() {
            errors.push(FieldError::required(field("type"), ""));
        }
        let is_decision = DECISIONS.contains(&condition_type);
        let allowed: &[&str] = if is_decision { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            errors.push(FieldError::required(field("status"), ""));
        } else if !allowed.contains(&status) {
            let supported: Vec<String> = allowed.iter().map(|status| format!("{status:?}")).collect();
            errors.push(FieldError::unsupported(field("status"), &json!(status), &supported));
        }
        let opposite = match condition_type {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !opposite.is_empty() && seen(index, opposite) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(CONDITIONS, &json!(condition_type), detail));
        }
        if seen(index, condition_type) {
            errors.push(FieldError::duplicate(field("type"), &json!(condition_type).to_string()));
        }
    }
    errors
}
