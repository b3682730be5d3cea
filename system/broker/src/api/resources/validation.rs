//! Checks of names, labels, annotations and ids in bodies. Each error says what is allowed in which field.
use sindri_model::limits::{
    ANNOTATION_KEY_CHARS_MAX, ANNOTATION_VALUE_CHARS_MAX, DESCRIPTION_CHARS_MAX, LABEL_CHARS_MAX, NAME_CHARS_MAX,
};

use crate::api::http::error_response::ErrorResponse;

/// Checks that a name is neither blank nor too long, and has no control characters.
pub(crate) fn check_name(field: &str, name: &str) -> Result<(), ErrorResponse> {
    let is_short_enough = name.chars().count() <= NAME_CHARS_MAX;
    if is_short_enough && !name.trim().is_empty() && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!("{field} must have 1 to {NAME_CHARS_MAX} characters and no control characters");
    Err(ErrorResponse::bad_request("invalid_name", message))
}

/// Checks a name of an agent or of its cluster.
pub(crate) fn check_agent_name(field: &str, name: &str) -> Result<(), ErrorResponse> {
    check_name(field, name).map_err(|error| error.with_code("invalid_agent"))
}

/// Checks the description of a stack or a generator.
pub(crate) fn check_description(description: Option<&str>) -> Result<(), ErrorResponse> {
    if description.is_none_or(|text| text.chars().count() <= DESCRIPTION_CHARS_MAX) {
        return Ok(());
    }
    let message = format!("description must have at most {DESCRIPTION_CHARS_MAX} characters");
    Err(ErrorResponse::bad_request("invalid_description", message))
}

/// Checks a text if there is one.
pub(crate) fn check_optional(
    text: Option<&str>,
    check: impl FnOnce(&str) -> Result<(), ErrorResponse>,
) -> Result<(), ErrorResponse> {
    text.map_or(Ok(()), check)
}

pub(crate) fn check_label(label: &str) -> Result<(), ErrorResponse> {
    if is_word(label, LABEL_CHARS_MAX) {
        return Ok(());
    }
    let message = format!("a label must have 1 to {LABEL_CHARS_MAX} characters, without spaces or control characters");
    Err(ErrorResponse::bad_request("invalid_label", message))
}

pub(crate) fn check_annotation(key: &str, value: &str) -> Result<(), ErrorResponse> {
    if !is_word(key, ANNOTATION_KEY_CHARS_MAX) {
        let message = format!(
            "the key of an annotation must have 1 to {ANNOTATION_KEY_CHARS_MAX} characters, without spaces or control \
             characters"
        );
        return Err(ErrorResponse::bad_request("invalid_annotation", message));
    }
    if value.contains('\0') || value.chars().count() > ANNOTATION_VALUE_CHARS_MAX {
        let message = format!("the value of an annotation must have at most {ANNOTATION_VALUE_CHARS_MAX} characters");
        return Err(ErrorResponse::bad_request("invalid_annotation", message));
    }
    Ok(())
}

/// Checks that the offset of a list is not negative.
pub(crate) fn check_offset(offset: i64) -> Result<i64, ErrorResponse> {
    if offset < 0 { Err(ErrorResponse::bad_request("invalid_query", "offset must be at least 0")) } else { Ok(offset) }
}

/// Returns the error for a body that names another stack than the path.
pub(crate) fn stack_mismatch() -> ErrorResponse {
    ErrorResponse::bad_request("stack_id_mismatch", "the stack id in the body is not the one in the path")
}

/// Returns the error for a body that names another agent than the path.
pub(crate) fn agent_mismatch() -> ErrorResponse {
    ErrorResponse::bad_request("agent_id_mismatch", "agent_id in the body is not the agent in the path")
}

fn is_word(text: &str, chars_max: usize) -> bool {
    !text.is_empty()
        && text.chars().count() <= chars_max
        && !text.chars().any(|char| char.is_control() || char.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive_and_count_characters() {
        assert!(check_label(&"ü".repeat(LABEL_CHARS_MAX)).is_ok());
        assert!(check_label(&"x".repeat(LABEL_CHARS_MAX + 1)).is_err());
        assert!(check_name("name", &"ü".repeat(NAME_CHARS_MAX)).is_ok());
        let (key, value) = ("k".repeat(ANNOTATION_KEY_CHARS_MAX), "v".repeat(ANNOTATION_VALUE_CHARS_MAX));
        assert!(check_annotation(&key, &value).is_ok());
        assert!(check_annotation(&format!("{key}k"), "").is_err());
        assert!(check_annotation("k", &format!("{value}v")).is_err());
    }

    #[test]
    fn whitespace_and_control_characters_are_rejected() {
        for text in ["", " ", "a b", "a\tb", "a\u{2003}b", "a\0", "\u{7f}"] {
            assert!(check_label(text).is_err(), "{text:?}");
            assert!(check_annotation(text, "").is_err(), "{text:?}");
        }
        assert!(check_annotation("k", "two\nlines").is_ok());
        assert!(check_annotation("k", "\0").is_err());
    }
}
