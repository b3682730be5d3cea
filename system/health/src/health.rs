//! Health of one object: a state, a reason and a message, both of bounded length.

use std::fmt;

/// Maximum length of a message.
pub const MESSAGE_CHARACTERS_MAX: usize = 1_000;
/// Maximum length of a reason.
pub const REASON_CHARACTERS_MAX: usize = 64;
/// Last character of a truncated message.
const ELLIPSIS: char = '…';

/// State of an object, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// Works as declared.
    Ready,
    /// Cannot be assessed.
    Unknown,
    /// Not ready, but may become ready by itself.
    Progressing,
    /// Will not become ready without an operator's action.
    Failing,
}

impl fmt::Display for HealthState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ready",
            Self::Unknown => "unknown",
            Self::Progressing => "progressing",
            Self::Failing => "failing",
        })
    }
}

/// Health of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// State.
    pub state: HealthState,
    /// Reason in one word: `ProgressDeadlineExceeded`.
    pub reason: String,
    /// Human-readable message in one line; may be empty.
    pub message: String,
}

impl Health {
    /// Health of a declared object that does not exist.
    pub fn missing() -> Self {
        Self::progressing("Missing", "it does not exist")
    }

    /// Health of an object that is applied once and gone, with the reason if it had failed.
    pub fn done(failure: Option<String>) -> Self {
        match failure {
            None => Self::ready("Done", "it was created once, and is gone"),
            Some(reason) => {
                Self::failing("Failed", format!("{reason}; it is gone, and not created again as it is declared"))
            }
        }
    }

    /// Health of an object that is applied once and gone, and of which it was not seen whether it had completed or failed.
    pub fn result_not_seen() -> Self {
        Self::unknown("ResultNotSeen", "it was created once, and is gone; whether it had completed was not seen")
    }

    /// Health of an object of a kind that could not be read.
    pub fn not_read() -> Self {
        Self::unknown("NotSeen", "its kind could not be read")
    }

    pub(crate) fn ready(reason: &str, message: impl AsRef<str>) -> Self {
        Self::new(HealthState::Ready, reason, message)
    }

    pub(crate) fn progressing(reason: &str, message: impl AsRef<str>) -> Self {
        Self::new(HealthState::Progressing, reason, message)
    }

    pub(crate) fn failing(reason: &str, message: impl AsRef<str>) -> Self {
        Self::new(HealthState::Failing, reason, message)
    }

    pub(crate) fn unknown(reason: &str, message: impl AsRef<str>) -> Self {
        Self::new(HealthState::Unknown, reason, message)
    }

    pub(crate) fn new(state: HealthState, reason: &str, message: impl AsRef<str>) -> Self {
        let reason = if is_valid_reason(reason) { reason.to_owned() } else { default_reason(state).to_owned() };
        Self { state, reason, message: to_message(message.as_ref()) }
    }
}

/// Returns true if a reason from a status is valid as the reason of a health.
pub(crate) fn is_valid_reason(text: &str) -> bool {
    let is_short = text.len() <= REASON_CHARACTERS_MAX;
    let starts_with_letter = text.starts_with(|first: char| first.is_ascii_alphabetic());
    is_short
        && starts_with_letter
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// Returns the default reason of a state.
fn default_reason(state: HealthState) -> &'static str {
    match state {
        HealthState::Ready => "Ready",
        HealthState::Unknown => "Unknown",
        HealthState::Progressing => "InProgress",
        HealthState::Failing => "Failed",
    }
}

/// Converts a text to a message of one line and bounded length.
pub(crate) fn to_message(text: &str) -> String {
    truncate(text, MESSAGE_CHARACTERS_MAX)
}

/// Replaces control characters by spaces and truncates to a number of characters.
pub(crate) fn truncate(text: &str, characters: usize) -> String {
    let replace_control = |character: char| if character.is_control() { ' ' } else { character };
    let mut line: String = text.trim().chars().map(replace_control).take(characters).collect();
    if text.trim().chars().nth(characters).is_some() {
        line.pop();
        line.push(ELLIPSIS);
    }
    line
}
