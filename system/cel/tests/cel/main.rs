//! What rules give, what they fail with, what they are refused for, and that nothing harms.

mod checking;
mod random;
mod schemas;
mod values;

use serde_json::{Value, json};
use sindri_cel::{Cel, Failure, Program, Type};

/// What the rules of these tests look at.
fn object() -> Value {
    json!({
        "text": "größe", "size": 3, "share": 0.5, "on": true, "nothing": null, "huge": u64::MAX,
        "list": [1, 2, 3], "map": {"b": "2", "a": "1"}, "parts": [{"id": "x", "count": 1}, {"id": "y"}],
    })
}

/// The value of a rule in a few words, or what is said of it.
fn said(rule: &str) -> String {
    let object = object();
    let program = match Program::compile(rule, &[("self", Type::Dyn)]) {
        Ok(program) => program,
        Err(issues) => {
            return format!("refused: {}", issues.first().map(|issue| issue.words.clone()).unwrap_or_default());
        }
    };
    match program.evaluate(&[("self", Cel::of(&object))]) {
        Ok(Cel::Bool(value)) => value.to_string(),
        Ok(Cel::Int(value)) => value.to_string(),
        Ok(Cel::Uint(value)) => format!("{value}u"),
        Ok(Cel::Double(value)) => format!("{value:?}"),
        Ok(other) => other.as_text().map_or_else(|| other.kind().to_owned(), str::to_owned),
        Err(failure @ Failure::Wrong { .. }) => format!("fails: {failure}"),
        Err(Failure::Exhausted) => "takes too long".to_owned(),
    }
}
