//! Shows two values side by side: only the fields that differ, the real server's value on the left.

use std::collections::BTreeSet;

use serde_json::Value;

/// Width of a column.
const WIDTH: usize = 70;
/// Maximum number of lines of one value.
const LINES_MAX: usize = 12;
/// Maximum number of fields of one step.
const FIELDS_MAX: usize = 40;

/// Returns lines that show the differences between two values.
#[must_use]
pub fn side_by_side(real: &Value, simulated: &Value) -> Vec<String> {
    let fields = differing_values(real, simulated);
    let mut lines = vec![format!("{:<WIDTH$} | {}", "real", "simulated")];
    for (pointer, real, simulated) in fields.iter().take(FIELDS_MAX) {
        lines.push(format!("at {pointer}"));
        let (left, right) = (wrap(real), wrap(simulated));
        for index in 0..left.len().max(right.len()) {
            let part = |column: &[String]| column.get(index).cloned().unwrap_or_default();
            lines.push(format!("{:<WIDTH$} | {}", part(&left), part(&right)).trim_end().to_owned());
        }
    }
    if fields.len() > FIELDS_MAX {
        lines.push(format!("… and {} more fields", fields.len() - FIELDS_MAX));
    }
    lines
}

/// Pointer of a field with both values.
pub type DifferingValue = (String, Option<Value>, Option<Value>);

/// Returns all fields in which two values differ.
#[must_use]
pub fn differing_values(real: &Value, simulated: &Value) -> Vec<DifferingValue> {
    let mut found = Vec::new();
    collect(real, simulated, "", &mut found);
    found
}

fn collect(real: &Value, simulated: &Value, pointer: &str, found: &mut Vec<DifferingValue>) {
    match (real, simulated) {
        (Value::Object(real), Value::Object(simulated)) => {
            let keys: BTreeSet<&String> = real.keys().chain(simulated.keys()).collect();
            for key in keys {
                let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                collect_optional(real.get(key), simulated.get(key), &below, found);
            }
        }
        (Value::Array(real), Value::Array(simulated)) => {
            for index in 0..real.len().max(simulated.len()) {
                collect_optional(real.get(index), simulated.get(index), &format!("{pointer}/{index}"), found);
            }
        }
        _ if real != simulated => found.push((pointer.to_owned(), Some(real.clone()), Some(simulated.clone()))),
        _ => {}
    }
}

fn collect_optional(real: Option<&Value>, simulated: Option<&Value>, pointer: &str, found: &mut Vec<DifferingValue>) {
    match (real, simulated) {
        (Some(real), Some(simulated)) => collect(real, simulated, pointer, found),
        _ => found.push((pointer.to_owned(), real.cloned(), simulated.cloned())),
    }
}

/// Splits a value into lines of a column's width. A missing value is an empty column.
fn wrap(value: &Option<Value>) -> Vec<String> {
    let text: Vec<char> = value.as_ref().map(ToString::to_string).unwrap_or_default().chars().collect();
    let mut lines: Vec<String> = text.chunks(WIDTH).take(LINES_MAX).map(|line| line.iter().collect()).collect();
    if text.len() > WIDTH * LINES_MAX {
        lines.push(format!("… and {} more characters", text.len() - WIDTH * LINES_MAX));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_differing_fields_are_shown_side_by_side() {
        let lines =
            side_by_side(&json!({"a": 1, "b": [1, 2], "c": "x"}), &json!({"a": 1, "b": [1, 3, 4], "d/e": null}));
        let shown: Vec<String> =
            lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected =
            ["real | simulated", "at /b/1", "2 | 3", "at /b/2", "| 4", "at /c", "\"x\" |", "at /d~1e", "| null"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_value_takes_more_than_one_line() {
        let lines = side_by_side(&json!("x".repeat(WIDTH + 1)), &json!(1));
        assert_eq!(lines.len(), 4);
        assert_eq!(side_by_side(&json!("x".repeat(WIDTH * 100)), &json!(1)).len(), 2 + LINES_MAX + 1);
    }
}
