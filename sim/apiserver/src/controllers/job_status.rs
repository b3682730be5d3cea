//! What a job says about itself: conditions, and which of its numbered pods have succeeded.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::writes::{condition, holds};
use crate::object::fields::list;

/// Whether a job has ended, well or not.
pub(super) fn is_finished(job: &Value) -> bool {
    holds(job, "Complete") || holds(job, "Failed")
}

/// Sets a condition, and says whether anything changed.
pub(super) fn set_condition(
    job: &mut Value,
    at: &str,
    (kind, holds): (&str, bool),
    reason: &str,
    message: &str,
) -> bool {
    let status = if holds { "True" } else { "False" };
    if condition(job, kind).is_some_and(|known| known["status"] == status && known["reason"] == reason) {
        return false;
    }
    let others = list(job, "/status/conditions").iter().filter(|known| known["type"] != kind);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastProbeTime": at, "lastTransitionTime": at,
    }));
    job["status"]["conditions"] = json!(conditions);
    true
}

/// Ends a job: first what is decided, then what is so.
pub(super) fn conclude(job: &mut Value, at: &str, (decided, ended): (&str, &str), reason: &str, message: &str) {
    set_condition(job, at, (decided, true), reason, message);
    set_condition(job, at, (ended, true), reason, message);
    if ended == "Complete" {
        job["status"]["completionTime"] = json!(at);
    }
}

/// Numbers as a status writes them: `0-2,4`.
pub(super) fn indexes(numbers: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let written: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    written.join(",")
}

/// The numbers that a status names. What cannot be read names none.
pub(super) fn read_indexes(written: &str) -> BTreeSet<i64> {
    let mut numbers = BTreeSet::new();
    for part in written.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            numbers.extend(first..=last.min(first.saturating_add(INDEXES_MAX)));
        }
    }
    numbers
}

/// The largest number of completions that a job with numbers may have.
const INDEXES_MAX: i64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_in_runs_and_read_again() {
        let numbers: BTreeSet<i64> = [0, 1, 2, 4, 6, 7].into();
        assert_eq!(indexes(&numbers), "0-2,4,6,7");
        assert_eq!(read_indexes("0-2,4,6,7"), numbers);
        assert_eq!(read_indexes("nonsense"), BTreeSet::new());
    }
}
