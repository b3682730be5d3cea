//! Results of a run, as lines and as JSON.

use serde_json::{Value, json};

use crate::exchange::{Difference, ExchangeResult};
use crate::expected::{StepId, Verdict};
use crate::side_by_side::side_by_side;

/// Formats one line for each exchange, and the totals.
#[must_use]
pub fn format_table(outcomes: &[ExchangeResult], verdict: &Verdict) -> Vec<String> {
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

/// Formats unexpected differences, and expectations that no longer apply.
#[must_use]
pub fn format_unexpected(verdict: &Verdict) -> Vec<String> {
    let format = |steps: &[StepId], what: &str| -> Vec<String> {
        steps.iter().map(|(name, step)| format!("{name}, step {step}: {what}")).collect()
    };
    let new = format(&verdict.new, "differs, and did not before");
    let unused = format(&verdict.unused_waivers, "the waiver no longer applies; remove its line");
    let fixed = format(&verdict.fixed, "no longer differs; `cargo xtask fidelity --update` removes its line");
    [new, unused, fixed].concat()
}

/// Formats one difference: the request, and both responses side by side.
#[must_use]
pub fn format_difference(name: &str, difference: &Difference) -> Vec<String> {
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
    lines.extend(side_by_side(&difference.real, &difference.simulated));
    lines
}

/// Returns the totals as JSON.
#[must_use]
pub fn summary(outcomes: &[ExchangeResult], verdict: &Verdict) -> Value {
    let (sequences, requests, differences) = totals(outcomes);
    json!({"sequences": sequences, "requests": requests, "differences": differences, "waivers": verdict.waived})
}

fn totals(outcomes: &[ExchangeResult]) -> (usize, usize, usize) {
    let steps = outcomes.iter().map(|outcome| outcome.steps).sum();
    (outcomes.len(), steps, outcomes.iter().map(|outcome| outcome.differences.len()).sum())
}
