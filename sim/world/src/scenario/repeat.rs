//! `repeat`: a group of steps that is written once and carried out several times, with a counter in its texts.
//! It is expanded when the file is read.

use serde::Deserialize;
use serde_json::Value;

use super::step::Step;

/// The most steps that one `repeat` may expand to.
const STEPS_MAX: usize = 1_000;

/// Steps to repeat.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Number of repetitions.
    times: usize,
    /// Name of the counter: `{NAME}` in any text of the steps stands for its value, from 1 on.
    #[serde(rename = "as")]
    counter: String,
    /// The steps.
    steps: Vec<Value>,
}

impl Repeat {
    /// Writes the steps out.
    pub fn expand(&self) -> Result<Vec<Step>, String> {
        self.check()?;
        let counter = format!("{{{}}}", self.counter);
        let repeated = (1..=self.times).flat_map(|number| self.steps.iter().map(move |step| (number, step)));
        repeated
            .map(|(number, step)| {
                let step = replace_counter(step, &counter, &number.to_string());
                serde_json::from_value(step).map_err(|error| format!("repeat: {error}"))
            })
            .collect()
    }

    fn check(&self) -> Result<(), String> {
        let Self { times, counter, steps } = self;
        if counter.is_empty() || !counter.chars().all(|character| character.is_ascii_lowercase()) {
            return Err(format!("repeat: as is a name of lower-case letters, not {counter:?}"));
        }
        if steps.is_empty() {
            return Err("repeat: steps has at least one step".to_owned());
        }
        if steps.iter().any(|step| step.get("repeat").is_some()) {
            return Err("repeat: steps has no further repeat".to_owned());
        }
        if *times == 0 || times.checked_mul(steps.len()).is_none_or(|count| count > STEPS_MAX) {
            return Err(format!("repeat: times is at least 1, and times the number of steps at most {STEPS_MAX}"));
        }
        let placeholder = format!("{{{counter}}}");
        if *times > 1 && !steps.iter().any(|step| has_text(step, &placeholder)) {
            return Err(format!("repeat: no step uses {placeholder}"));
        }
        Ok(())
    }
}

fn has_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(items) => items.iter().any(|item| has_text(item, text)),
        Value::Object(fields) => fields.values().any(|field| has_text(field, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Replaces the counter in every text, but not in the names of fields.
fn replace_counter(value: &Value, counter: &str, number: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(counter, number)),
        Value::Array(items) => items.iter().map(|item| replace_counter(item, counter, number)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), replace_counter(field, counter, number))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expand(repeat: Value) -> Result<Vec<Step>, String> {
        serde_json::from_value::<Repeat>(repeat).map_err(|error| error.to_string())?.expand()
    }

    #[test]
    fn the_counter_is_replaced_in_every_text_of_every_repetition() {
        let steps = json!([{"delete": {"stack": "stuck-{n}"}}, {"kill": "host-{n}-{n}"}]);
        let expanded = expand(json!({"times": 2, "as": "n", "steps": steps})).expect("a valid repeat");
        let texts: Vec<String> = expanded.iter().map(|step| format!("{step:?}")).collect();
        let expected = [
            r#"Delete(StackRef { stack: "stuck-1" })"#,
            r#"Kill("host-1-1")"#,
            r#"Delete(StackRef { stack: "stuck-2" })"#,
            r#"Kill("host-2-2")"#,
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_repeat_that_makes_no_sense_is_rejected_with_its_reason() {
        let step = json!({"kill": "host-{n}"});
        let cases = [
            (json!({"times": 0, "as": "n", "steps": [step]}), "times is at least 1"),
            (json!({"times": 1001, "as": "n", "steps": [step]}), "at most 1000"),
            (json!({"times": 2, "as": "n", "steps": []}), "at least one step"),
            (json!({"times": 2, "as": "", "steps": [step]}), "lower-case letters"),
            (json!({"times": 2, "as": "N!", "steps": [step]}), "lower-case letters"),
            (json!({"times": 2, "as": "m", "steps": [step]}), "no step uses {m}"),
            (json!({"times": 2, "steps": [step]}), "missing field `as`"),
            (json!({"times": 2, "as": "n", "steps": [step], "until": 3}), "unknown field `until`"),
            (json!({"times": 2, "as": "n", "steps": [{"jump": "{n}"}]}), "unknown variant `jump`"),
            (json!({"times": 2, "as": "n", "steps": [{"repeat": {}}]}), "no further repeat"),
        ];
        for (repeat, reason) in cases {
            let error = expand(repeat.clone()).expect_err("an invalid repeat");
            assert!(error.contains(reason), "{repeat}: {error}");
        }
    }
}
