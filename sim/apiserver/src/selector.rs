//! Label and field selectors.
//!
//! Field selectors know `metadata.name` and `metadata.namespace`, and for namespaces `status.phase`.

use serde_json::Value;

use crate::error::ApiError;
use crate::pointer::text;

/// One condition on a label or a field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    /// Pointer, value, and whether they must be equal.
    fields: Vec<(&'static str, String, bool)>,
}

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, ApiError> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(fields)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
        self.labels.iter().all(|requirement| match requirement {
            Requirement::In(name, values) => label(name).is_some_and(|value| values.iter().any(|other| other == value)),
            Requirement::NotIn(name, values) => {
                !label(name).is_some_and(|value| values.iter().any(|other| other == value))
            }
            Requirement::Exists(name) => label(name).is_some(),
            Requirement::Absent(name) => label(name).is_none(),
        }) && self.fields.iter().all(|(pointer, value, equal)| (text(object, pointer) == value) == *equal)
    }
}

fn malformed(selector: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!("unable to parse requirement: {why} in {selector:?}"))
}

fn parse_labels(selector: &str) -> Result<Vec<Requirement>, ApiError> {
    split_outside_parentheses(selector)
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| parse_label(part, selector))
        .collect()
}

fn parse_label(part: &str, selector: &str) -> Result<Requirement, ApiError> {
    let key = |text: &str| {
        let text = text.trim();
        let valid = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        if valid { Ok(text.to_owned()) } else { Err(malformed(selector, &format!("invalid label key {text:?}"))) }
    };
    if let Some((name, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key(name)?, vec![value.trim().to_owned()]));
    }
    if let Some((name, value)) = part.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Ok(Requirement::In(key(name)?, vec![value.trim().to_owned()]));
    }
    if let Some((head, values)) = part.split_once('(') {
        let values = values.strip_suffix(')').ok_or_else(|| malformed(selector, "missing ')'"))?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        return match head.split_whitespace().collect::<Vec<_>>().as_slice() {
            [name, "in"] => Ok(Requirement::In(key(name)?, values)),
            [name, "notin"] => Ok(Requirement::NotIn(key(name)?, values)),
            _ => Err(malformed(selector, "expected 'in' or 'notin'")),
        };
    }
    match part.strip_prefix('!') {
        Some(name) => Ok(Requirement::Absent(key(name)?)),
        None => Ok(Requirement::Exists(key(part)?)),
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_fields(selector: &str) -> Result<Vec<(&'static str, String, bool)>, ApiError> {
    let mut fields = Vec::new();
    for part in selector.split(',').filter(|part| !part.is_empty()) {
        let (name, value, equal) = match part.split_once("!=") {
            Some((name, value)) => (name, value, false),
            None => {
                let (name, value) = part.split_once('=').ok_or_else(|| {
                    ApiError::bad_request(format!("invalid selector: '{selector}'; can't understand '{part}'"))
                })?;
                (name, value.strip_prefix('=').unwrap_or(value), true)
            }
        };
        let pointer = match name {
            "metadata.name" => "/metadata/name",
            "metadata.namespace" => "/metadata/namespace",
            "status.phase" => "/status/phase",
            other => {
                return Err(ApiError::bad_request(format!("field label not supported: {other}")));
            }
        };
        fields.push((pointer, value.to_owned(), equal));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_match_as_kubernetes_does() {
        let object = json!({"metadata": {"name": "x", "labels": {"app": "web", "tier": "a"}}});
        for (labels, fields, expected) in [
            ("app=web", "", true),
            ("app==web,tier", "", true),
            ("app!=web", "", false),
            ("other!=web", "", true),
            ("app in (web, db)", "", true),
            ("app notin (web)", "", false),
            ("!other", "", true),
            ("!app", "", false),
            ("", "metadata.name=x", true),
            ("", "metadata.name!=x", false),
        ] {
            let selector = Selector::parse(labels, fields).expect("valid");
            assert_eq!(selector.matches(&object), expected, "{labels} {fields}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (labels, fields) in [("a in (b", ""), ("a b c", ""), ("", "spec.x=1"), ("", "metadata.name")] {
            assert!(Selector::parse(labels, fields).is_err(), "{labels} {fields}");
        }
    }
}
