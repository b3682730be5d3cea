//! One exchange: played to the simulated server, and held against what the real one said.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sindri_record::play::{Impossible, PlayError, play};
use sindri_record::recording::{exchange_file, normalised};
use sindri_record::script::Script;
use sindri_record::target::{Target, TargetError};
use thiserror::Error;

use crate::simulated::{AUTHORITY, Simulated, TOKEN};

/// The parts of a step that are the server's. What was sent follows from them.
const ANSWERED: [&str; 4] = ["response", "events", "ended", "impossible"];

/// One step that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which step of the exchange, from 1.
    pub step: usize,
    /// What the step is about.
    pub about: String,
    /// What was sent, or the stream that was read.
    pub request: Value,
    /// What the real server said.
    pub real: Value,
    /// What the simulated one said.
    pub simulated: Value,
}

/// What came of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// How many steps it has.
    pub steps: usize,
    /// The steps that differ.
    pub differences: Vec<Difference>,
}

/// An exchange that cannot be compared.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The record cannot be read.
    #[error("{}: {reason}", path.display())]
    Record {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It did not even begin.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// There is no server to play it to.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Plays an exchange to a fresh simulated server.
///
/// # Errors
/// When there is no record of it, or it cannot begin.
pub async fn compare(script: &Script, directory: &Path) -> Result<Outcome, ExchangeError> {
    let real = recorded(script, directory)?;
    let target = Target::new(&format!("http://{AUTHORITY}"), None, Some(TOKEN))?;
    let played = play(script, &target, Simulated::new(script.controllers), Impossible::IsRecorded).await?;
    let simulated = normalised(script, &target, &played);
    Ok(Outcome { name: script.name.clone(), steps: real.len(), differences: differences(&real, &simulated) })
}

fn recorded(script: &Script, directory: &Path) -> Result<Vec<Value>, ExchangeError> {
    let path = directory.join(exchange_file(&script.name));
    let failed = |reason: String| ExchangeError::Record { path: path.clone(), reason };
    let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    let record: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let steps = record.get("steps").and_then(Value::as_array).cloned();
    steps.ok_or_else(|| failed("it has no steps".to_owned()))
}

/// The steps that differ; one that only one side has differs too.
#[must_use]
pub fn differences(real: &[Value], simulated: &[Value]) -> Vec<Difference> {
    let nothing = Value::Null;
    let count = real.len().max(simulated.len());
    let pair = |index: usize| (real.get(index).unwrap_or(&nothing), simulated.get(index).unwrap_or(&nothing));
    let differs = |index: usize| {
        let (real, simulated) = pair(index);
        (answered(real) != answered(simulated)).then(|| Difference {
            step: index + 1,
            about: real.get("about").and_then(Value::as_str).unwrap_or_default().to_owned(),
            request: real.get("request").or_else(|| real.get("watch")).cloned().unwrap_or_default(),
            real: answered(real),
            simulated: answered(simulated),
        })
    };
    (0..count).filter_map(differs).collect()
}

fn answered(step: &Value) -> Value {
    let parts = ANSWERED.iter().filter_map(|part| Some(((*part).to_owned(), in_one_order(step.get(part)?))));
    if step.is_null() { json!({"missing": true}) } else { Value::Object(parts.collect()) }
}

/// What an error says of an object is in the order in which Go has its fields, which no document tells.
const SHOWN_OBJECT: &str = "Invalid value: \"";

/// An answer with the objects that its errors repeat in the order of names.
fn in_one_order(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains(SHOWN_OBJECT) => json!(with_sorted_objects(text)),
        Value::Array(list) => list.iter().map(in_one_order).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), in_one_order(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn with_sorted_objects(text: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(SHOWN_OBJECT) {
        let start = at + SHOWN_OBJECT.len() - 1;
        let mut quoted = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<String>();
        let shown = quoted.next().and_then(Result::ok);
        let end = start + quoted.byte_offset();
        let sorted = shown.and_then(|shown| serde_json::from_str::<Value>(&shown).ok()).filter(Value::is_object);
        match sorted {
            Some(mut object) => {
                // Managers are in the order of times, and times are whole seconds of a clock that nobody has.
                if let Some(Value::Array(managers)) = object.pointer_mut("/metadata/managedFields") {
                    managers.sort_by_key(ToString::to_string);
                }
                done.push_str(&rest[..start]);
                done.push_str(&json!(object.to_string()).to_string());
                rest = &rest[end..];
            }
            None => {
                done.push_str(&rest[..=start]);
                rest = &rest[start + 1..];
            }
        }
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_said_is_compared() {
        let step =
            |path: &str, status: u16| json!({"about": "a", "request": {"path": path}, "response": {"status": status}});
        assert_eq!(differences(&[step("/x", 200)], &[step("/y", 200)]), []);
        let found = differences(&[step("/x", 200), step("/x", 200)], &[step("/x", 200), step("/x", 404)]);
        assert_eq!(found.iter().map(|difference| difference.step).collect::<Vec<_>>(), [2]);
        assert_eq!(found[0].request, json!({"path": "/x"}));
    }

    #[test]
    fn objects_in_errors_are_compared_whatever_the_order_of_their_fields() {
        let step = |shown: &str| json!({"response": {"message": format!("a: Invalid value: {}: no", json!(shown))}});
        assert_eq!(differences(&[step("{\"b\":1,\"a\":2}")], &[step("{\"a\":2,\"b\":1}")]), []);
        let managed = |first: &str, second: &str| {
            step(&json!({"metadata": {"managedFields": [{"manager": first}, {"manager": second}]}}).to_string())
        };
        assert_eq!(differences(&[managed("a", "b")], &[managed("b", "a")]), []);
        assert_eq!(differences(&[managed("a", "b")], &[managed("b", "c")]).len(), 1);
        assert_eq!(differences(&[step("{\"b\":1,\"a\":2}")], &[step("{\"a\":3,\"b\":1}")]).len(), 1);
        assert_eq!(differences(&[step("b")], &[step("b")]), []);
    }

    #[test]
    fn a_step_that_is_missing_differs() {
        assert_eq!(differences(&[json!({"response": 1})], &[]).len(), 1);
        assert_eq!(differences(&[], &[json!({"response": 1})]).len(), 1);
    }
}
