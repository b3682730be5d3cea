//! Status of a Job: conditions, and the indexes of its completed pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::writes::{condition, is_condition_true};
use crate::object::fields::{array_at, string_at};

/// True if a job has completed or failed.
pub(super) fn is_finished(job: &Value) -> bool {
    is_condition_true(job, "Complete") || is_condition_true(job, "Failed")
}

/// Sets a condition. Returns true if it changed.
pub(super) fn set_condition(
    job: &mut Value,
    timestamp: &str,
    (condition_type, holds): (&str, bool),
    reason: &str,
    message: &str,
) -> bool {
    let status = if holds { "True" } else { "False" };
    if condition(job, condition_type).is_some_and(|known| known["status"] == status && known["reason"] == reason) {
        return false;
    }
    let others = array_at(job, "/status/conditions").iter().filter(|known| known["type"] != condition_type);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(json!({
        "type": condition_type, "status": status, "reason": reason, "message": message,
        "lastProbeTime": timestamp, "lastTransitionTime": timestamp,
    }));
    job["status"]["conditions"] = json!(conditions);
    true
}

/// End of a job.
pub(super) struct JobEnd {
    pub(super) succeeds: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl JobEnd {
    pub(super) fn failed(reason: &str, message: &str) -> Self {
        Self { succeeds: false, reason: reason.to_owned(), message: message.to_owned() }
    }

    pub(super) fn completed() -> Self {
        let (reason, message) = ("CompletionsReached", "Reached expected number of succeeded pods");
        Self { succeeds: true, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Returns the condition of a job whose end is decided.
    pub(super) fn decision(&self) -> &'static str {
        if self.succeeds { "SuccessCriteriaMet" } else { "FailureTarget" }
    }

    /// Returns the condition of a job that has ended.
    pub(super) fn condition(&self) -> &'static str {
        if self.succeeds { "Complete" } else { "Failed" }
    }
}

/// Returns the end of a job that was decided before.
pub(super) fn decided_end(job: &Value) -> Option<JobEnd> {
    let decided = |kind: &str| condition(job, kind).filter(|condition| condition["status"] == "True");
    let (succeeds, found) = match decided("SuccessCriteriaMet") {
        Some(found) => (true, found),
        None => (false, decided("FailureTarget")?),
    };
    let text = |field: &str| string_at(found, field).to_owned();
    Some(JobEnd { succeeds, reason: text("/reason"), message: text("/message") })
}

/// Formats completion indexes as in a status: `0-2,4`.
pub(super) fn format_indexes(numbers: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let parts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    parts.join(",")
}

/// Parses completion indexes. Malformed parts are ignored.
pub(super) fn parse_indexes(text: &str) -> BTreeSet<i64> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            numbers.extend(first..=last.min(first.saturating_add(INDEXES_MAX)));
        }
    }
    numbers
}

/// Maximum number of completions of an indexed job.
const INDEXES_MAX: i64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_formatted_as_ranges_and_parsed() {
        let numbers: BTreeSet<i64> = [0, 1, 2, 4, 6, 7].into();
        assert_eq!(format_indexes(&numbers), "0-2,4,6,7");
        assert_eq!(parse_indexes("0-2,4,6,7"), numbers);
        assert_eq!(parse_indexes("nonsense"), BTreeSet::new());
    }
}
