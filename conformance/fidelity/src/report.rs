//! What a run found, in lines for people and in JSON for programs.

use serde_json::{Value, json};

use crate::columns::columns;
use crate::exchange::{Difference, Outcome};
use crate::expected::{Place, Verdict};

/// One line for each exchange, and the totals.
#[must_use]
pub fn table(outcomes: &[Outcome], verdict: &Verdict) -> Vec<String> {
    let mut lines = vec![format!("{:<32} {:>6} {:>8}", "exchange", "steps", "differ")];
    for outcome in outcomes {
        lines.push(format!("{:<32} {:>6} {:>8}", outcome.name, outcome.steps, outcome.differences.len()));
    }
    let (sequences, requests, differences) = totals(outcomes);
    let waivers = verdict.waived;
    lines.push(String::new());
    lines.push(format!("{sequences} sequences, {requests} requests, {differences} differences, {waivers} waivers"));
    let equal = requests - differences;
    lines.push(format!("{equal} of {requests} steps are equal, {} steps differ", differences - waivers));
    lines
}

/// What surprises, and what no longer applies.
#[must_use]
pub fn complaints(verdict: &Verdict) -> Vec<String> {
    let say = |places: &[Place], what: &str| -> Vec<String> {
        places.iter().map(|(name, step)| format!("{name}, step {step}: {what}")).collect()
    };
    let new = say(&verdict.new, "differs, and did not before");
    let idle = say(&verdict.idle_waivers, "the waiver no longer applies; take its line away");
    let mended = say(&verdict.mended, "no longer differs; `cargo xtask fidelity --update` takes its line away");
    [new, idle, mended].concat()
}

/// One difference: what was sent, and both answers next to each other.
#[must_use]
pub fn shown(name: &str, difference: &Difference) -> Vec<String> {
    let mut lines = vec![String::new(), format!("{name}, step {}: {}", difference.step, difference.about)];
    lines.push(match difference.request.get("method").and_then(Value::as_str) {
        Some(method) => {
            let mut request = difference.request.clone();
            let path = request.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(parts) = request.as_object_mut() {
                parts.retain(|part, _| !matches!(part.as_str(), "method" | "path"));
            }
            format!("{method} {path} {request}")
        }
        None => format!("reads {}", difference.request),
    });
    lines.extend(columns(&difference.real, &difference.simulated));
    lines
}

/// The totals for programs.
#[must_use]
pub fn summary(outcomes: &[Outcome], verdict: &Verdict) -> Value {
    let (sequences, requests, differences) = totals(outcomes);
    json!({"sequences": sequences, "requests": requests, "differences": differences, "waivers": verdict.waived})
}

fn totals(outcomes: &[Outcome]) -> (usize, usize, usize) {
    let steps = outcomes.iter().map(|outcome| outcome.steps).sum();
    (outcomes.len(), steps, outcomes.iter().map(|outcome| outcome.differences.len()).sum())
}
