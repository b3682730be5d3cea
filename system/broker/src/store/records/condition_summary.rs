//! The most important statement of the conditions in a report about a stack.
//!
//! It is computed when the report arrives and stored beside the assignment: the overview of all stacks would otherwise parse
//! the conditions of each assignment. A change of the rules needs a migration that sets the stored phases to NULL.

use std::str::FromStr;

use jiff::Timestamp;
use sindri_model::wire::{Condition, ConditionStatus, condition};

/// Characters of a message in an overview of one stack.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Reasons of `Applied` being false that are no failures.
const PROGRESSING: &str = "Progressing";
const SUSPENDED: &str = "Suspended";
/// Reason of `Ready` being false if an object has failed.
const FAILING: &str = "Failing";

/// Phase of a revision on a cluster according to the conditions that the agent reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedPhase {
    /// The plan waits for an approval.
    Blocked,
    /// The revision is not accepted or not applied.
    Failed,
    /// Nothing is written, because the stack is suspended.
    Suspended,
    /// The revision is not applied yet.
    Progressing,
    /// Applied, and an object has failed.
    Failing,
    /// Applied and ready, and another client has changed objects.
    Drifted,
    /// Applied and not ready, and another client has changed objects.
    DriftedNotReady,
    /// Applied, and not ready yet.
    NotReady,
    /// Applied and ready.
    Ready,
}

impl ReportedPhase {
    const ALL: [Self; 9] = [
        Self::Blocked,
        Self::Failed,
        Self::Suspended,
        Self::Progressing,
        Self::Failing,
        Self::Drifted,
        Self::DriftedNotReady,
        Self::NotReady,
        Self::Ready,
    ];

    /// Returns the name in the database.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "Blocked",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Failing => "Failing",
            Self::Drifted => "Drifted",
            Self::DriftedNotReady => "DriftedNotReady",
            Self::NotReady => "NotReady",
            Self::Ready => "Ready",
        }
    }
}

impl FromStr for ReportedPhase {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|phase| phase.as_str() == name);
        named.ok_or_else(|| format!("{name:?} is not the phase of a report"))
    }
}

/// Phase of a report, and the condition from which it follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionSummary {
    /// The phase.
    pub phase: ReportedPhase,
    /// Time of the last transition of the condition.
    pub since: Option<Timestamp>,
    /// Reason of the condition; none if the stack is ready.
    pub reason: Option<String>,
    /// Message of the condition; none if the stack is ready.
    pub message: Option<String>,
}

impl ConditionSummary {
    /// Summarizes the conditions of a report.
    pub(crate) fn from_conditions(conditions: &[Condition]) -> Self {
        let (phase, cause) = find_phase(conditions);
        let text = |text: &str| (phase != ReportedPhase::Ready && !text.is_empty()).then(|| text.to_owned());
        Self {
            phase,
            since: cause.map(|condition| condition.last_transition_time),
            reason: cause.and_then(|condition| text(&condition.reason)),
            message: cause.and_then(|condition| text(&condition.message)).map(|text| cut(text, MESSAGE_CHARS_MAX)),
        }
    }
}

fn find_phase(conditions: &[Condition]) -> (ReportedPhase, Option<&Condition>) {
    let find = |kind| conditions.iter().find(|condition| condition.kind == kind);
    let find_with = |kind, status| find(kind).filter(|condition: &&Condition| condition.status == status);
    if let Some(blocked) = find_with(condition::BLOCKED, ConditionStatus::True) {
        return (ReportedPhase::Blocked, Some(blocked));
    }
    if let Some(rejected) = find_with(condition::ACCEPTED, ConditionStatus::False) {
        return (ReportedPhase::Failed, Some(rejected));
    }
    let Some(applied) = find_with(condition::APPLIED, ConditionStatus::True) else {
        let cause = find(condition::APPLIED);
        return match cause.filter(|applied| applied.status == ConditionStatus::False) {
            Some(applied) if applied.reason == SUSPENDED => (ReportedPhase::Suspended, cause),
            Some(applied) if applied.reason == PROGRESSING => (ReportedPhase::Progressing, cause),
            Some(_) => (ReportedPhase::Failed, cause),
            None => (ReportedPhase::Progressing, cause),
        };
    };
    let ready = find(condition::READY);
    let is_ready = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
    if ready.is_some_and(|ready| ready.status == ConditionStatus::False && ready.reason == FAILING) {
        return (ReportedPhase::Failing, ready);
    }
    match (find_with(condition::DRIFTED, ConditionStatus::True), is_ready) {
        (Some(drifted), true) => (ReportedPhase::Drifted, Some(drifted)),
        (Some(drifted), false) => (ReportedPhase::DriftedNotReady, Some(drifted)),
        (None, true) => (ReportedPhase::Ready, ready),
        (None, false) => (ReportedPhase::NotReady, ready.or(Some(applied))),
    }
}

impl ConditionSummary {
    /// Returns the text in the database: phase, time and reason, and the message on the next line.
    pub(crate) fn to_stored(&self) -> String {
        let since = self.since.map_or_else(|| "-".to_owned(), |since| since.as_microsecond().to_string());
        let reason = self.reason.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        let text = format!("{} {since} {reason}", self.phase.as_str());
        match &self.message {
            Some(message) => format!("{text}\n{message}"),
            None => text.trim_end().to_owned(),
        }
    }

    /// Reads the text in the database.
    pub(crate) fn from_stored(text: &str) -> Result<Self, String> {
        let (head, message) = text.split_once('\n').map_or((text, None), |(head, message)| (head, Some(message)));
        let mut words = head.splitn(3, ' ');
        let phase = words.next().unwrap_or_default().parse()?;
        let since = words.next().and_then(|since| since.parse().ok());
        let since = since.and_then(|micros| Timestamp::from_microsecond(micros).ok());
        let reason = words.next().filter(|reason| !reason.is_empty()).map(str::to_owned);
        Ok(Self { phase, since, reason, message: message.map(str::to_owned) })
    }
}

/// Shortens a text to this number of characters; the last is then an ellipsis.
pub(crate) fn cut(mut text: String, chars_max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        let last = text.char_indices().nth(chars_max.saturating_sub(1)).map_or(end, |(last, _)| last);
        text.truncate(last);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Condition {
        let (kind, reason) = text[1..].split_once(' ').unwrap_or((&text[1..], ""));
        let status = match &text[..1] {
            "+" => ConditionStatus::True,
            "-" => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        };
        let (kind, reason, message) = (kind.to_owned(), reason.to_owned(), format!("about {kind}"));
        Condition { kind, status, reason, message, last_transition_time: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn the_first_condition_that_needs_attention_is_the_phase() {
        use ReportedPhase::*;
        for (conditions, phase, message) in [
            (&["+Applied", "+Ready"][..], Ready, None),
            (&["+Applied", "?Ready NotSeen"], NotReady, Some("about Ready")),
            (&["+Applied"], NotReady, Some("about Applied")),
            (&["+Applied", "-Ready Failing", "+Drifted"], Failing, Some("about Ready")),
            (&["+Applied", "-Ready Progressing", "+Drifted"], DriftedNotReady, Some("about Drifted")),
            (&["+Applied", "+Ready", "+Drifted ComesBack"], Drifted, Some("about Drifted")),
            (&["+Accepted", "-Applied Progressing"], Progressing, Some("about Applied")),
            (&["+Accepted", "-Applied Suspended"], Suspended, Some("about Applied")),
            (&["+Accepted", "-Applied Failed"], Failed, Some("about Applied")),
            (&["-Accepted NotAccepted", "-Applied Progressing"], Failed, Some("about Accepted")),
            (&["-Applied HeldBack", "+Blocked"], Blocked, Some("about Blocked")),
            (&["+Ready"], Progressing, None),
            (&[], Progressing, None),
        ] {
            let conditions: Vec<Condition> = conditions.iter().map(|text| condition(text)).collect();
            let summary = ConditionSummary::from_conditions(&conditions);
            assert_eq!((summary.phase, summary.message.as_deref()), (phase, message), "{conditions:?}");
        }
    }

    #[test]
    fn a_summary_is_read_as_it_was_stored() {
        let text = |text: &str| Some(text.to_owned());
        for phase in ReportedPhase::ALL {
            for (since, reason, message) in [
                (None, None, None),
                (Some(Timestamp::UNIX_EPOCH), None, None),
                (Some(Timestamp::UNIX_EPOCH), text("two words"), None),
                (None, text("Reason"), text("first line\nsecond line")),
                (None, None, text("a message alone")),
            ] {
                let summary = ConditionSummary { phase, since, reason, message };
                assert_eq!(ConditionSummary::from_stored(&summary.to_stored()), Ok(summary));
            }
        }
        assert!(ConditionSummary::from_stored("Splendid -").is_err());
    }

    #[test]
    fn a_long_text_ends_with_an_ellipsis() {
        assert_eq!(cut("ärger".to_owned(), 5), "ärger");
        assert_eq!(cut("ärgern".to_owned(), 5), "ärge…");
    }
}
