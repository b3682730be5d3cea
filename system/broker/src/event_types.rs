//! Event types of webhooks, and the patterns by which a subscription selects them.

use std::fmt;
use std::str::FromStr;

use sindri_model::limits::WEBHOOK_EVENT_TYPES_MAX;
use thiserror::Error;

/// Length to which a pattern is truncated in an error.
const SHOWN_CHARS_MAX: usize = 64;
/// Pattern that matches every type.
const WILDCARD: &str = "*";
/// End of a pattern that matches every type of a subject.
const SUBJECT_WILDCARD: &str = ".*";

macro_rules! event_types {
    ($($name:ident = $text:literal,)*) => {
        /// Type of an event. The list is closed, so that a receiver can handle all of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum EventType {
            $($name,)*
        }

        impl EventType {
            /// Every type.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name in messages and subscriptions.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

event_types! {
    AgentRegistered = "agent.registered",
    AgentDeregistered = "agent.deregistered",
    AgentOffline = "agent.offline",
    StackCreated = "stack.created",
    StackDeleted = "stack.deleted",
    DeploymentCreated = "deployment.created",
    DeploymentApplied = "deployment.applied",
    DeploymentFailed = "deployment.failed",
    DeploymentDeleted = "deployment.deleted",
    DeploymentDrifted = "deployment.drifted",
    DeploymentBlocked = "deployment.blocked",
    WorkorderCreated = "workorder.created",
    WorkorderClaimed = "workorder.claimed",
    WorkorderCompleted = "workorder.completed",
    WorkorderFailed = "workorder.failed",
}

impl EventType {
    /// Returns the part before the dot.
    fn subject(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventType {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let event_type = Self::ALL.iter().copied().find(|event_type| event_type.as_str() == text);
        event_type.ok_or_else(|| PatternError::UnknownType(shorten(text)))
    }
}

/// Invalid patterns of a subscription.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum PatternError {
    #[error("there is no event type {0:?}")]
    UnknownType(String),
    #[error("{0:?} matches no event type")]
    MatchesNothing(String),
    #[error("a subscription must have at least one event type")]
    None,
    #[error("a subscription has at most {WEBHOOK_EVENT_TYPES_MAX} patterns of event types, not {0}")]
    TooMany(usize),
}

/// One pattern of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Everything,
    /// Every type of the subject of this one.
    SubjectOf(EventType),
    Exactly(EventType),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, PatternError> {
        if text == WILDCARD {
            return Ok(Self::Everything);
        }
        if let Some(subject) = text.strip_suffix(SUBJECT_WILDCARD) {
            let event_type = EventType::ALL.iter().copied().find(|event_type| event_type.subject() == subject);
            return event_type.map(Self::SubjectOf).ok_or_else(|| PatternError::MatchesNothing(shorten(text)));
        }
        if text.contains('*') {
            return Err(PatternError::MatchesNothing(shorten(text)));
        }
        text.parse().map(Self::Exactly)
    }

    fn matches(self, event: EventType) -> bool {
        match self {
            Self::Everything => true,
            Self::SubjectOf(one) => one.subject() == event.subject(),
            Self::Exactly(one) => one == event,
        }
    }
}

/// Event types by pattern: `deployment.failed`, `deployment.*` or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventPatterns(Vec<Pattern>);

impl EventPatterns {
    /// Parses the patterns of a subscription; each must match an event type.
    pub(crate) fn parse<S: AsRef<str>>(patterns: &[S]) -> Result<Self, PatternError> {
        match patterns.len() {
            0 => Err(PatternError::None),
            1..=WEBHOOK_EVENT_TYPES_MAX => {
                patterns.iter().map(|pattern| Pattern::parse(pattern.as_ref())).collect::<Result<_, _>>().map(Self)
            }
            count => Err(PatternError::TooMany(count)),
        }
    }

    /// Returns true if one of the patterns matches.
    pub(crate) fn matches(&self, event: EventType) -> bool {
        self.0.iter().any(|pattern| pattern.matches(event))
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_matches(patterns: &[&str]) -> Vec<&'static str> {
        let patterns = EventPatterns::parse(patterns).unwrap();
        EventType::ALL.iter().filter(|event| patterns.matches(**event)).map(|event| event.as_str()).collect()
    }

    #[test]
    fn every_type_is_parsed_from_its_name_and_has_one_subject() {
        for event in EventType::ALL {
            assert_eq!(event.to_string().parse(), Ok(*event));
            assert_eq!(event.as_str().split('.').count(), 2, "{event}");
        }
        assert_eq!(EventType::ALL.len(), 15);
    }

    #[test]
    fn patterns_match_one_type_a_subject_or_everything() {
        assert_eq!(list_matches(&["stack.created"]), ["stack.created"]);
        assert_eq!(list_matches(&["agent.*"]), ["agent.registered", "agent.deregistered", "agent.offline"]);
        assert_eq!(list_matches(&["*"]).len(), EventType::ALL.len());
        assert_eq!(list_matches(&["stack.deleted", "agent.offline"]), ["agent.offline", "stack.deleted"]);
    }

    #[test]
    fn the_error_has_the_pattern_that_matches_nothing() {
        for (text, message) in [
            ("deployment.exploded", "there is no event type \"deployment.exploded\""),
            ("Deployment.failed", "there is no event type \"Deployment.failed\""),
            ("", "there is no event type \"\""),
            ("cluster.*", "\"cluster.*\" matches no event type"),
            ("deploy*", "\"deploy*\" matches no event type"),
            ("*.created", "\"*.created\" matches no event type"),
            (".*", "\".*\" matches no event type"),
            ("**", "\"**\" matches no event type"),
            ("deployment.failed.*", "\"deployment.failed.*\" matches no event type"),
        ] {
            assert_eq!(EventPatterns::parse(&["*", text]).unwrap_err().to_string(), message);
        }
        let long = EventPatterns::parse(&["x".repeat(10_000)]).unwrap_err().to_string();
        assert_eq!(long, format!("there is no event type {:?}", "x".repeat(SHOWN_CHARS_MAX)));
    }

    #[test]
    fn a_subscription_has_one_to_32_patterns() {
        assert_eq!(EventPatterns::parse::<&str>(&[]), Err(PatternError::None));
        assert!(EventPatterns::parse(&["*"; WEBHOOK_EVENT_TYPES_MAX]).is_ok());
        assert_eq!(
            EventPatterns::parse(&["*"; WEBHOOK_EVENT_TYPES_MAX + 1]),
            Err(PatternError::TooMany(WEBHOOK_EVENT_TYPES_MAX + 1))
        );
    }
}
