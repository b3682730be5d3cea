//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at, value_at};
use crate::strategy::Strategy;
use crate::strategy::checks::names::{label_1035_name_errors, subdomain_name_errors};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const URL_FORM: &str = "; desired format: https://host[/path]";
/// Fewest labels of the name of a webhook.
const NAME_LABELS_MIN: usize = 3;

pub(super) struct WebhookConfiguration;

impl Strategy for WebhookConfiguration {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut names = BTreeSet::new();
        let mut errors = Vec::new();
        for (index, webhook) in array_at(object, "/webhooks").iter().enumerate() {
            let path = format!("webhooks[{index}]");
            errors.extend(validate_webhook(webhook, &path));
            let name = string_at(webhook, "/name");
            if !name.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &format!("{name:?}")));
            }
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn validate_webhook(webhook: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = validate_name(string_at(webhook, "/name"), &format!("{path}.name"));
    for (index, rule) in array_at(webhook, "/rules").iter().enumerate() {
        errors.extend(validate_rule(rule, &format!("{path}.rules[{index}]")));
    }
    for (field, supported) in [
        ("failurePolicy", ["Fail", "Ignore"]),
        ("matchPolicy", ["Equivalent", "Exact"]),
        ("sideEffects", SIDE_EFFECTS),
        ("reinvocationPolicy", ["IfNeeded", "Never"]),
    ] {
        let field_path = format!("{path}.{field}");
        match value_at(webhook, &format!("/{field}")).filter(|value| !value.is_null()) {
            None if field == "sideEffects" => {
                let detail = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
                errors.push(FieldError::required(field_path, &detail));
            }
            Some(value) if !supported.iter().any(|known| value == known) => {
                errors.push(FieldError::unsupported(field_path, value, &quote(&supported)));
            }
            _ => {}
        }
    }
    let seconds = value_at(webhook, "/timeoutSeconds");
    if let Some(seconds) = seconds.filter(|seconds| !seconds.as_i64().is_some_and(|count| (1..=30).contains(&count))) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(format!("{path}.timeoutSeconds"), seconds, detail));
    }
    errors.extend(validate_client(webhook, &format!("{path}.clientConfig")));
    errors.extend(validate_review_versions(webhook, &format!("{path}.admissionReviewVersions")));
    errors
}

fn validate_name(name: &str, path: &str) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let details = subdomain_name_errors(name);
    if !details.is_empty() {
        return details.iter().map(|detail| FieldError::invalid(path, &json!(name), detail)).collect();
    }
    let is_long_enough = name.split('.').count() >= NAME_LABELS_MIN;
    let detail = "should be a domain with at least three segments separated by dots";
    if is_long_enough { Vec::new() } else { vec![FieldError::invalid(path, &json!(name), detail)] }
}

fn validate_rule(rule: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, plural) in [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")]
    {
        let (values, field_path) = (array_at(rule, &format!("/{field}")), format!("{path}.{field}"));
        if values.is_empty() {
            errors.push(FieldError::required(field_path.as_str(), ""));
        }
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            let detail = format!("if '*' is present, must not specify other {plural}");
            errors.push(FieldError::invalid(field_path.as_str(), &json!(values), &detail));
        }
        for (index, value) in values.iter().enumerate() {
            let is_known = OPERATIONS.iter().any(|known| value == known);
            if field == "operations" && !is_known {
                errors.push(FieldError::unsupported(format!("{field_path}[{index}]"), value, &quote(&OPERATIONS)));
            } else if field == "apiVersions" && value == "" {
                errors.push(FieldError::required(format!("{field_path}[{index}]"), ""));
            }
        }
    }
    errors.extend(validate_resources(array_at(rule, "/resources"), &format!("{path}.resources")));
    let scopes = ["*", "Cluster", "Namespaced"];
    if let Some(scope) = value_at(rule, "/scope").filter(|scope| !scopes.iter().any(|known| *scope == known)) {
        errors.push(FieldError::unsupported(format!("{path}.scope"), scope, &quote(&scopes)));
    }
    errors
}

fn validate_resources(resources: &[Value], path: &str) -> Vec<FieldError> {
    if resources.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let names: Vec<&str> = resources.iter().map(|resource| resource.as_str().unwrap_or_default()).collect();
    let (mut with_all_subresources, mut of_all_resources) = (BTreeSet::new(), BTreeSet::new());
    // As in the real server, the last name without a subresource decides.
    let mut has_plain = false;
    let mut errors = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let field = format!("{path}[{index}]");
        let Some((resource, subresource)) = name.split_once('/') else {
            if name.is_empty() {
                errors.push(FieldError::required(field, ""));
            } else {
                has_plain = *name != "*";
            }
            continue;
        };
        if with_all_subresources.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {name}");
            errors.push(FieldError::invalid(field.as_str(), &json!(name), &detail));
        }
        if of_all_resources.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {name}");
            errors.push(FieldError::invalid(field.as_str(), &json!(name), &detail));
        }
        if subresource == "*" {
            with_all_subresources.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(subresource);
        }
    }
    if names.len() > 1 && names.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, &json!(names), detail));
    }
    if names.contains(&"*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, &json!(names), detail));
    }
    errors
}

fn validate_client(webhook: &Value, path: &str) -> Vec<FieldError> {
    match (value_at(webhook, "/clientConfig/url"), value_at(webhook, "/clientConfig/service")) {
        (Some(url), None) => validate_url(url.as_str().unwrap_or_default(), &format!("{path}.url")),
        (None, Some(service)) => validate_service(service, &format!("{path}.service")),
        _ => vec![FieldError::required(path, "exactly one of url or service is required")],
    }
}

fn validate_url(url: &str, path: &str) -> Vec<FieldError> {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let invalid = |value: &str, detail: String| FieldError::invalid(path, &json!(value), &detail);
    let mut errors = Vec::new();
    if scheme != "https" {
        errors.push(invalid(scheme, format!("'https' is the only allowed URL scheme{URL_FORM}")));
    }
    if host.is_empty() {
        errors.push(invalid(host, format!("host must be specified{URL_FORM}")));
    }
    for (part, name) in [(user, "user information is"), (fragment, "fragments are"), (query, "query parameters are")] {
        if !part.is_empty() {
            errors.push(invalid(part, format!("{name} not permitted in the URL")));
        }
    }
    errors
}

fn validate_service(service: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // The real server reports the one in place of the other.
    for (missing, reported) in [("/namespace", "name"), ("/name", "namespace")] {
        if string_at(service, missing).is_empty() {
            errors.push(FieldError::required(format!("{path}.{reported}"), ""));
        }
    }
    let port = value_at(service, "/port");
    if let Some(port) = port.filter(|port| !port.as_i64().is_some_and(|port| (1..=65_535).contains(&port))) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.port"), port, detail));
    }
    errors.extend(validate_path(string_at(service, "/path"), &format!("{path}.path")));
    errors
}

fn validate_path(text: &str, path: &str) -> Vec<FieldError> {
    let invalid = |detail: &str| FieldError::invalid(path, &json!(text), detail);
    if matches!(text, "" | "/") {
        return Vec::new();
    }
    if text == "//" {
        return vec![invalid("segment[0] may not be empty")];
    }
    let mut errors = Vec::new();
    if !text.starts_with('/') {
        errors.push(invalid("must start with a '/'"));
    }
    let segments = text.get(1..).unwrap_or_default();
    for (index, segment) in segments.strip_suffix('/').unwrap_or(segments).split('/').enumerate() {
        if segment.is_empty() {
            errors.push(invalid(&format!("segment[{index}] may not be empty")));
            continue;
        }
        let details = subdomain_name_errors(segment);
        errors.extend(details.iter().map(|detail| invalid(&format!("segment[{index}]: {detail}"))));
    }
    errors
}

fn validate_review_versions(webhook: &Value, path: &str) -> Vec<FieldError> {
    let versions = array_at(webhook, "/admissionReviewVersions");
    let known = REVIEW_VERSIONS.join(", ");
    if versions.is_empty() {
        return vec![FieldError::required(path, &format!("must specify one of {known}"))];
    }
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let field = format!("{path}[{index}]");
        if versions[..index].contains(version) {
            errors.push(FieldError::invalid(field, version, "duplicate version"));
            continue;
        }
        let details = label_1035_name_errors(version.as_str().unwrap_or_default());
        errors.extend(details.iter().map(|detail| FieldError::invalid(field.as_str(), version, detail)));
    }
    if !versions.iter().any(|version| REVIEW_VERSIONS.iter().any(|known| version == known)) {
        let detail = format!("must include at least one of {known}");
        errors.push(FieldError::invalid(path, &json!(versions), &detail));
    }
    errors
}

fn quote(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| format!("{value:?}")).collect()
}
