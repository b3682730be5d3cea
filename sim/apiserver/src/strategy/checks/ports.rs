//! Validates port numbers and port names.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;

const NAME_LENGTH_MAX: usize = 15;

/// Checks a port number.
pub(crate) fn check_number(field: String, number: i64) -> Option<FieldError> {
    let detail = "must be between 1 and 65535, inclusive";
    (!(1..=65_535).contains(&number)).then(|| FieldError::invalid(field, &json!(number), detail))
}

/// Returns the errors of a port name.
pub(crate) fn port_name_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > NAME_LENGTH_MAX {
        errors.push(format!("must be no more than {NAME_LENGTH_MAX} characters"));
    }
    if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.chars().any(|c| c.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// Checks a port that is a number or a name.
pub(crate) fn check_number_or_name(field: &str, port: &Value) -> Vec<FieldError> {
    match port {
        Value::String(name) => {
            port_name_errors(name).iter().map(|detail| FieldError::invalid(field, &json!(name), detail)).collect()
        }
        other => check_number(field.to_owned(), other.as_i64().unwrap_or_default()).into_iter().collect(),
    }
}
