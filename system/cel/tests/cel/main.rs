//! Values of rules, evaluation errors, compile errors, and robustness.

mod checking;
mod fuzzed;
mod random;
mod schemas;
mod values;

use serde_json::{Value, json};
use sindri_cel::{Cel, EvaluationError, Program, Type};

/// The object of the rules in these tests.
fn object() -> Value {
    json!({
        "text": "größe", "size": 3, "share": 0.5, "on": true, "nothing": null, "huge": u64::MAX,
        "list": [1, 2, 3], "map": {"b": "2", "a": "1"}, "parts": [{"id": "x", "count": 1}, {"id": "y"}],
    })
}

/// Returns the value of a rule as text, or its error.
fn evaluate(rule: &str) -> String {
    let object = object();
    let program = match Program::compile(rule, &[("self", Type::Dyn)]) {
        Ok(program) => program,
        Err(issues) => {
            return format!("refused: {}", issues.first().map(|issue| issue.message.clone()).unwrap_or_default());
        }
    };
    match program.evaluate(&[("self", Cel::from_json(&object))]) {
        Ok(Cel::Bool(value)) => value.to_string(),
        Ok(Cel::Int(value)) => value.to_string(),
        Ok(Cel::Uint(value)) => format!("{value}u"),
        Ok(Cel::Double(value)) => format!("{value:?}"),
        Ok(other) => other.as_text().map_or_else(|| other.type_name().to_owned(), str::to_owned),
        Err(failure @ EvaluationError::Failed { .. }) => format!("fails: {failure}"),
        Err(EvaluationError::BudgetExceeded) => "takes too long".to_owned(),
    }
}
