//! Serializes responses as YAML, formatted as by Go's library: sorted keys, and lists not indented below their keys.

use std::collections::BTreeMap;

use serde_json::Value;

/// Serializes a value as a YAML document.
pub(crate) fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(_) | Value::Array(_) => block(value, 0, &mut text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&scalar(value));
            text.push('\n');
        }
    }
    text
}

fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 || !text.ends_with("- ") {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str(&plain(name));
                text.push(':');
                field(value, indent, text);
            }
        }
        Value::Array(list) => {
            for value in list {
                text.push_str(&" ".repeat(indent));
                text.push_str("- ");
                match value {
                    Value::Object(map) if !map.is_empty() => block(value, indent + 2, text),
                    other => {
                        text.push_str(&scalar(other));
                        text.push('\n');
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn field(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            block(value, indent + 2, text);
        }
        Value::Array(list) if !list.is_empty() => {
            text.push('\n');
            block(value, indent, text);
        }
        other => {
            text.push(' ');
            let column = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
            text.push_str(&folded(&scalar(other), column, indent + 2));
            text.push('\n');
        }
    }
}

/// Column after which a line is broken at the next space.
const WIDTH: usize = 80;

/// Folds a scalar into lines of limited width, indented after the first.
fn folded(scalar: &str, mut column: usize, indent: usize) -> String {
    if scalar.starts_with('"') {
        return scalar.to_owned();
    }
    let (mut folded, mut before) = (String::new(), None);
    let mut rest = scalar.chars().peekable();
    while let Some(character) = rest.next() {
        let is_inside = before.is_some_and(|before| before != ' ') && rest.peek().is_some_and(|next| *next != ' ');
        if character == ' ' && column > WIDTH && is_inside {
            folded.push('\n');
            folded.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            folded.push(character);
            column += 1;
        }
        before = Some(character);
    }
    folded
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        Value::String(text) => plain(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Returns a string without quotes if it cannot be parsed as another value.
fn plain(text: &str) -> String {
    let looks_other = text.is_empty()
        || text.parse::<f64>().is_ok()
        || text.parse::<jiff::Timestamp>().is_ok()
        || matches!(
            text.to_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "~" | "y" | "n"
        );
    let starts_badly = text.starts_with(|c: char| " -?:,[]{}#&*!|>'\"%@`".contains(c)) && text != "-";
    if looks_other {
        return format!("{text:?}");
    }
    if starts_badly || text.contains(": ") || text.contains(" #") || text.ends_with([':', ' ']) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    if text.contains('\n') { format!("{text:?}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_laid_out_as_go_does() {
        let value =
            json!({"b": [{"x": 1, "a": {}}, "t"], "a": "2026-01-01T00:00:00Z", "c": {".": {}, "k:{\"a\":1}": "1"}});
        let expected = "a: \"2026-01-01T00:00:00Z\"\nb:\n- a: {}\n  x: 1\n- t\nc:\n  .: {}\n  k:{\"a\":1}: \"1\"\n";
        assert_eq!(write(&value), expected);
        assert_eq!(serde_yaml::from_str::<Value>(&write(&value)).expect("YAML"), value);
    }
}
