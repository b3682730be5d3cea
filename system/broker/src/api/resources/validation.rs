//! What names, labels and annotations may be. Each refusal says what is allowed, and in which field it was not.

use crate::api::http::error_response::Refusal;

/// The longest name of anything.
const NAME_CHARS_MAX: usize = 255;
const LABEL_CHARS_MAX: usize = 63;
const ANNOTATION_KEY_CHARS_MAX: usize = 253;
const ANNOTATION_VALUE_CHARS_MAX: usize = 4096;

/// Refuses a name that nobody could type or read.
pub(crate) fn check_name(field: &str, name: &str) -> Result<(), Refusal> {
    let fits = name.chars().count() <= NAME_CHARS_MAX;
    if fits && !name.trim().is_empty() && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!("{field} must have 1 to {NAME_CHARS_MAX} characters and no control characters");
    Err(Refusal::bad("invalid_name", message))
}

/// The same, if there is one.
pub(crate) fn check_new_name(field: &str, name: Option<&str>) -> Result<(), Refusal> {
    name.map_or(Ok(()), |name| check_name(field, name))
}

pub(crate) fn check_label(label: &str) -> Result<(), Refusal> {
    if is_word(label, LABEL_CHARS_MAX) {
        return Ok(());
    }
    let message = format!("a label must have 1 to {LABEL_CHARS_MAX} characters, without spaces or control characters");
    Err(Refusal::bad("invalid_label", message))
}

pub(crate) fn check_annotation(key: &str, value: &str) -> Result<(), Refusal> {
    if !is_word(key, ANNOTATION_KEY_CHARS_MAX) {
        let message = format!(
            "the key of an annotation must have 1 to {ANNOTATION_KEY_CHARS_MAX} characters, without spaces or control \
             characters"
        );
        return Err(Refusal::bad("invalid_annotation", message));
    }
    if value.contains('\0') || value.chars().count() > ANNOTATION_VALUE_CHARS_MAX {
        let message = format!("the value of an annotation must have at most {ANNOTATION_VALUE_CHARS_MAX} characters");
        return Err(Refusal::bad("invalid_annotation", message));
    }
    Ok(())
}

/// How many to leave out of a list cannot be less than none.
pub(crate) fn check_offset(offset: i64) -> Result<i64, Refusal> {
    if offset < 0 { Err(Refusal::bad("invalid_query", "offset must be at least 0")) } else { Ok(offset) }
}

/// The body names another stack than the path.
pub(crate) fn stack_mismatch() -> Refusal {
    Refusal::bad("stack_id_mismatch", "the id of the stack in the body is not the one of the path")
}

/// The body names another agent than the path.
pub(crate) fn agent_mismatch() -> Refusal {
    Refusal::bad("agent_id_mismatch", "agent_id in the body is not the agent of the path")
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
    fn bounds_are_inclusive_and_count_characters() {
        assert!(check_label(&"ü".repeat(LABEL_CHARS_MAX)).is_ok());
        assert!(check_label(&"x".repeat(LABEL_CHARS_MAX + 1)).is_err());
        assert!(check_name("name", &"ü".repeat(NAME_CHARS_MAX)).is_ok());
        let (key, value) = ("k".repeat(ANNOTATION_KEY_CHARS_MAX), "v".repeat(ANNOTATION_VALUE_CHARS_MAX));
        assert!(check_annotation(&key, &value).is_ok());
        assert!(check_annotation(&format!("{key}k"), "").is_err());
        assert!(check_annotation("k", &format!("{value}v")).is_err());
    }

    #[test]
    fn what_cannot_be_seen_is_refused() {
        for text in ["", " ", "a b", "a\tb", "a\u{2003}b", "a\0", "\u{7f}"] {
            assert!(check_label(text).is_err(), "{text:?}");
            assert!(check_annotation(text, "").is_err(), "{text:?}");
        }
        assert!(check_annotation("k", "two\nlines").is_ok());
        assert!(check_annotation("k", "\0").is_err());
    }
}
