//! Results of a run of generated sequences, as lines.

use serde_json::{Value, json};

use crate::exchange::Difference;
use crate::expected::Expected;
use crate::generated::difference_class::DifferenceClass;
use crate::generated::run::ComparedSequence;
use crate::generated::session::RunResult;
use crate::report::format_difference;

/// Maximum length of a request.
const REQUEST_CHARACTERS_MAX: usize = 2_000;
/// Maximum number of listed sequences of one class.
const NUMBERS_MAX: usize = 5;

/// Formats the short sequence of a class, with both responses of the step that differs.
#[must_use]
pub fn format_sequence(class: &DifferenceClass, compared: &ComparedSequence) -> Vec<String> {
    let sequence = &compared.sequence;
    let mut lines = vec![String::new(), format!("=== {class}")];
    lines.push(format!("--seed {} --only {}, reduced:", sequence.seed, sequence.index));
    for (index, step) in sequence.steps.iter().enumerate() {
        lines.push(format!("{:>3} {}", index + 1, describe_step(step)));
    }
    let first = compared.differences.iter().find(|difference| DifferenceClass::from_difference(difference) == *class);
    lines.extend(first.into_iter().flat_map(|difference| format_difference("sequence", &only_messages(difference))));
    lines
}

/// Reduces a difference in the status to the statuses and messages.
fn only_messages(difference: &Difference) -> Difference {
    let status = |side: &Value| side.pointer("/response/status").cloned();
    if status(&difference.real) == status(&difference.simulated) {
        return difference.clone();
    }
    let summarize = |side: &Value| {
        let message = side.pointer("/response/body/message").cloned();
        json!({"status": status(side), "message": message})
    };
    Difference { real: summarize(&difference.real), simulated: summarize(&difference.simulated), ..difference.clone() }
}

fn describe_step(step: &Value) -> String {
    let part = |name: &str| step.get(name).map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
    let names = ["send", "watch", "read", "type", "accept", "body", "text"];
    let line = names.into_iter().filter_map(part).collect::<Vec<_>>().join(" ");
    line.chars().take(REQUEST_CHARACTERS_MAX).collect()
}

/// Formats all classes, the most frequent first, and the totals.
#[must_use]
pub fn format_summary(found: &RunResult, expected: &Expected) -> Vec<String> {
    let mut lines = Vec::new();
    let mut classes: Vec<(&DifferenceClass, &Vec<u64>)> = found.classes.iter().collect();
    classes.sort_by_key(|(_, examples)| std::cmp::Reverse(examples.len()));
    for (class, examples) in classes {
        let numbers: Vec<String> = examples.iter().take(NUMBERS_MAX).map(ToString::to_string).collect();
        lines.push(format!("{:>5} {class} ({})", examples.len(), numbers.join(", ")));
    }
    let total = found.coverage.total();
    let differing: usize = found.classes.values().map(Vec::len).sum();
    lines.push(String::new());
    let (requests, waivers) = (total.requests, expected.generated.len());
    lines.push(format!(
        "{} generated sequences, {requests} requests, {} differences, {waivers} waivers",
        found.sequences, total.differs
    ));
    let success = share(total.succeeded, requests);
    lines.push(format!("{success} of the requests succeed; {differing} sequences differ without a waiver"));
    lines
}

/// Formats a part of a whole in percent.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    format!("{} %", (part * 100).checked_div(whole).unwrap_or_default())
}
