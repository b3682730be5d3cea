//! The rules for names.

use serde_json::{Value, json};

use crate::error::FieldError;
use crate::pointer::name;
use crate::registry::Resource;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

pub(super) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let name = name(object);
    if name.is_empty() {
        return vec![FieldError::required("metadata.name", "name or generateName is required")];
    }
    let (max, rule, holds) = match (resource.custom, resource.kind.as_str()) {
        (false, "Namespace") => (63, LABEL, is_label(name)),
        (false, "Service") => {
            (63, LABEL_1035, is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase()))
        }
        _ => (253, SUBDOMAIN, name.split('.').all(is_label)),
    };
    let invalid = |why: &str| FieldError::invalid("metadata.name", &json!(name), why);
    let mut errors = Vec::new();
    if name.len() > max {
        errors.push(invalid(&format!("must be no more than {max} characters")));
    }
    if !holds {
        errors.push(invalid(rule));
    }
    errors
}

fn is_label(text: &str) -> bool {
    let inner = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
