//! A difference for people: only the places that differ, the real server's value on the left, the simulated one's on
//! the right.

use std::collections::BTreeSet;

use serde_json::Value;

/// How wide a column is.
const WIDTH: usize = 70;
/// How many lines of one value are shown.
const LINES_MAX: usize = 12;
/// How many places of one step are shown.
const PLACES_MAX: usize = 40;

/// The lines that show how two values differ.
#[must_use]
pub fn columns(real: &Value, simulated: &Value) -> Vec<String> {
    let places = places(real, simulated);
    let mut lines = vec![format!("{:<WIDTH$} | {}", "real", "simulated")];
    for (place, real, simulated) in places.iter().take(PLACES_MAX) {
        lines.push(format!("at {place}"));
        let (left, right) = (wrapped(real), wrapped(simulated));
        for index in 0..left.len().max(right.len()) {
            let part = |column: &[String]| column.get(index).cloned().unwrap_or_default();
            lines.push(format!("{:<WIDTH$} | {}", part(&left), part(&right)).trim_end().to_owned());
        }
    }
    if places.len() > PLACES_MAX {
        lines.push(format!("… and {} more places", places.len() - PLACES_MAX));
    }
    lines
}

/// A place with what both sides have there.
pub type Place = (String, Option<Value>, Option<Value>);

/// Every place at which two values differ.
#[must_use]
pub fn places(real: &Value, simulated: &Value) -> Vec<Place> {
    let mut places = Vec::new();
    collect(real, simulated, "", &mut places);
    places
}

fn collect(real: &Value, simulated: &Value, place: &str, places: &mut Vec<Place>) {
    match (real, simulated) {
        (Value::Object(real), Value::Object(simulated)) => {
            let keys: BTreeSet<&String> = real.keys().chain(simulated.keys()).collect();
            for key in keys {
                let below = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
                one_or_both(real.get(key), simulated.get(key), &below, places);
            }
        }
        (Value::Array(real), Value::Array(simulated)) => {
            for index in 0..real.len().max(simulated.len()) {
                one_or_both(real.get(index), simulated.get(index), &format!("{place}/{index}"), places);
            }
        }
        _ if real != simulated => places.push((place.to_owned(), Some(real.clone()), Some(simulated.clone()))),
        _ => {}
    }
}

fn one_or_both(real: Option<&Value>, simulated: Option<&Value>, place: &str, places: &mut Vec<Place>) {
    match (real, simulated) {
        (Some(real), Some(simulated)) => collect(real, simulated, place, places),
        _ => places.push((place.to_owned(), real.cloned(), simulated.cloned())),
    }
}

/// A value in lines that fit into a column. What is not there is an empty column.
fn wrapped(value: &Option<Value>) -> Vec<String> {
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
    fn only_what_differs_is_shown_side_by_side() {
        let lines = columns(&json!({"a": 1, "b": [1, 2], "c": "x"}), &json!({"a": 1, "b": [1, 3, 4], "d/e": null}));
        let shown: Vec<String> =
            lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected =
            ["real | simulated", "at /b/1", "2 | 3", "at /b/2", "| 4", "at /c", "\"x\" |", "at /d~1e", "| null"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_value_takes_more_than_one_line() {
        let lines = columns(&json!("x".repeat(WIDTH + 1)), &json!(1));
        assert_eq!(lines.len(), 4);
        assert_eq!(columns(&json!("x".repeat(WIDTH * 100)), &json!(1)).len(), 2 + LINES_MAX + 1);
    }
}
