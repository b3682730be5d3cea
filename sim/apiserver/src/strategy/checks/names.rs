//! Validates names, label keys and label values.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{name, string_at};

pub(crate) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const PART_LENGTH_MAX: usize = 63;

/// Returns the errors of a qualified name: a name with an optional domain prefix, such as a label key.
pub(crate) fn qualified_name_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = name.split('/').collect();
    let part = match parts.as_slice() {
        [part] => part,
        [prefix, part] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else if !prefix.split('.').all(is_label) {
                errors.push(format!("prefix part {SUBDOMAIN}"));
            }
            part
        }
        _ => {
            return vec![format!(
                "a valid label key {NAME_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if part.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if part.len() > PART_LENGTH_MAX {
        errors.push(format!("name part must be no more than {PART_LENGTH_MAX} characters"));
    }
    if !part.is_empty() && !is_name_part(part) {
        errors.push(format!("name part {NAME_PART}"));
    }
    errors
}

/// Returns the errors of a label value.
pub(crate) fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > PART_LENGTH_MAX {
        errors.push(format!("must be no more than {PART_LENGTH_MAX} characters"));
    }
    if !value.is_empty() && !is_name_part(value) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

fn is_name_part(text: &str) -> bool {
    let outer = |character: Option<char>| character.is_some_and(|character| character.is_ascii_alphanumeric());
    outer(text.chars().next())
        && outer(text.chars().next_back())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character))
}

/// Returns the errors of the name of an object, or of the prefix of its generated name.
pub(crate) fn validate(object: &Value, name_errors: impl Fn(&str) -> Vec<String>) -> Vec<FieldError> {
    let object_name = name(object);
    let base = string_at(object, "/metadata/generateName");
    let mut errors = Vec::new();
    if !base.is_empty() {
        // A prefix may end with a hyphen, because a suffix follows.
        let example = base.strip_suffix('-').map_or_else(|| base.to_owned(), |start| format!("{start}a"));
        let details = name_errors(&example);
        errors.extend(details.iter().map(|detail| FieldError::invalid("metadata.generateName", &json!(base), detail)));
    }
    if object_name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        return errors;
    }
    errors.extend(
        name_errors(object_name).iter().map(|detail| FieldError::invalid("metadata.name", &json!(object_name), detail)),
    );
    errors
}

/// Returns the errors of a name that has to be a DNS subdomain, as in most kinds.
pub(crate) fn subdomain_name_errors(name: &str) -> Vec<String> {
    dns_name_errors(name, 253, SUBDOMAIN, name.split('.').all(is_label))
}

/// Returns the errors of a name that has to be a DNS label.
pub(crate) fn label_name_errors(name: &str) -> Vec<String> {
    dns_name_errors(name, 63, LABEL, is_label(name))
}

/// Returns the errors of a name that has to be a DNS label and start with a letter.
pub(crate) fn label_1035_name_errors(name: &str) -> Vec<String> {
    let is_valid = is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase());
    dns_name_errors(name, 63, LABEL_1035, is_valid)
}

/// Returns the errors of a name that only has to be a valid path segment.
pub(crate) fn path_segment_name_errors(name: &str) -> Vec<String> {
    let details = ["/", "%"].into_iter().filter(|part| name.contains(part));
    let mut errors: Vec<String> = details.map(|part| format!("may not contain '{part}'")).collect();
    if matches!(name, "." | "..") {
        errors.push(format!("may not be '{name}'"));
    }
    errors
}

fn dns_name_errors(name: &str, length_max: usize, rule: &str, is_valid: bool) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > length_max {
        errors.push(format!("must be no more than {length_max} characters"));
    }
    if !is_valid {
        errors.push(rule.to_owned());
    }
    errors
}

pub(crate) fn is_label(text: &str) -> bool {
    let inner = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
