//! What a run of generated sequences found, in lines for people.

use serde_json::{Value, json};

use super::class::Class;
use super::run::Compared;
use super::session::Found;
use crate::exchange::Difference;
use crate::expected::Expected;
use crate::report::shown;

/// How many characters of a request are shown.
const REQUEST_CHARACTERS_MAX: usize = 2_000;
/// How many numbers of sequences of one class are shown.
const NUMBERS_MAX: usize = 5;

/// The shortest sequence of a class, with what both servers said at the step that differs.
#[must_use]
pub fn short(class: &Class, compared: &Compared) -> Vec<String> {
    let sequence = &compared.sequence;
    let mut lines = vec![String::new(), format!("=== {class}")];
    lines.push(format!("--seed {} --only {}, made shorter:", sequence.seed, sequence.index));
    for (index, step) in sequence.steps.iter().enumerate() {
        lines.push(format!("{:>3} {}", index + 1, told(step)));
    }
    let first = compared.differences.iter().find(|difference| Class::of(difference) == *class);
    lines.extend(first.into_iter().flat_map(|difference| shown("it", &told_apart(difference))));
    lines
}

/// Where one server refuses and the other does not, only what each has to say about it.
fn told_apart(difference: &Difference) -> Difference {
    let status = |side: &Value| side.pointer("/response/status").cloned();
    if status(&difference.real) == status(&difference.simulated) {
        return difference.clone();
    }
    let said = |side: &Value| {
        let message = side.pointer("/response/body/message").cloned();
        json!({"status": status(side), "message": message})
    };
    Difference { real: said(&difference.real), simulated: said(&difference.simulated), ..difference.clone() }
}

fn told(step: &Value) -> String {
    let part = |name: &str| step.get(name).map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
    let names = ["send", "watch", "read", "type", "accept", "body", "text"];
    let line = names.into_iter().filter_map(part).collect::<Vec<_>>().join(" ");
    line.chars().take(REQUEST_CHARACTERS_MAX).collect()
}

/// Every class, the most frequent first, and the totals.
#[must_use]
pub fn summary(found: &Found, expected: &Expected) -> Vec<String> {
    let mut lines = Vec::new();
    let mut classes: Vec<(&Class, &Vec<u64>)> = found.classes.iter().collect();
    classes.sort_by_key(|(_, examples)| std::cmp::Reverse(examples.len()));
    for (class, examples) in classes {
        let numbers: Vec<String> = examples.iter().take(NUMBERS_MAX).map(ToString::to_string).collect();
        lines.push(format!("{:>5} {class} ({})", examples.len(), numbers.join(", ")));
    }
    let total = found.coverage.total();
    let differing: usize = found.classes.values().map(Vec::len).sum();
    lines.push(String::new());
    let (requests, waivers) = (total.asked, expected.generated.len());
    lines.push(format!(
        "{} generated sequences, {requests} requests, {} differences, {waivers} waivers",
        found.sequences, total.differs
    ));
    let success = share(total.succeeded, requests);
    lines.push(format!("{success} of the requests succeed; {differing} sequences differ without a waiver"));
    lines
}

/// A part of a whole in percent.
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    format!("{} %", (part * 100).checked_div(whole).unwrap_or_default())
}
