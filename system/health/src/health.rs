//! What is said about one object: a state, a word and a sentence, both of bounded length.

use std::fmt;

/// The longest message.
pub const MESSAGE_CHARACTERS_MAX: usize = 1_000;
/// The longest reason.
pub const REASON_CHARACTERS_MAX: usize = 64;
/// What stands at the end of a message that was cut.
const CUT: char = '…';

/// How an object is doing, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// It does what it was declared to do.
    Ready,
    /// Nothing can be said about it.
    Unknown,
    /// On its way: it may become ready by itself.
    Progressing,
    /// It will not become ready without somebody's help.
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

/// How an object is doing, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How.
    pub state: HealthState,
    /// Why, in one word: `ProgressDeadlineExceeded`.
    pub reason: String,
    /// Why, for people; may be empty. One line.
    pub message: String,
}

impl Health {
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
        let reason = if is_word(reason) { reason.to_owned() } else { word_for(state).to_owned() };
        Self { state, reason, message: one_line(message.as_ref()) }
    }
}

/// Whether a reason that somebody wrote into a status can be used as ours.
pub(crate) fn is_word(text: &str) -> bool {
    let is_short = text.len() <= REASON_CHARACTERS_MAX;
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    is_short && begins && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// The reason where nobody gave one.
fn word_for(state: HealthState) -> &'static str {
    match state {
        HealthState::Ready => "Ready",
        HealthState::Unknown => "Unknown",
        HealthState::Progressing => "InProgress",
        HealthState::Failing => "Failed",
    }
}

/// The text as a message.
pub(crate) fn one_line(text: &str) -> String {
    cut(text, MESSAGE_CHARACTERS_MAX)
}

/// The text without line breaks and other control characters, and not longer than so many characters.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    let mut line: String = text.trim().chars().map(plain).take(characters).collect();
    if text.trim().chars().nth(characters).is_some() {
        line.pop();
        line.push(CUT);
    }
    line
}
