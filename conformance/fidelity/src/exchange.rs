//! Runs one exchange with the simulated server, and compares the responses with the recorded ones.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sindri_record::recording::{exchange_file, normalise_transcript};
use sindri_record::script::Script;
use sindri_record::script_runner::{OnFailure, ScriptRunError, run_script};
use sindri_record::target::{Target, TargetError};
use thiserror::Error;

use crate::simulated::{AUTHORITY, SimulatedServer, TOKEN};

/// Parts of a step that come from the server. Only they are compared: requests depend on earlier responses.
const SERVER_PARTS: [&str; 5] = ["response", "events", "ended", "impossible", "reviews"];

/// One step that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Number of the step, from 1.
    pub step: usize,
    /// Description of the step.
    pub about: String,
    /// Request, or the stream that was read.
    pub request: Value,
    /// Response of the real server.
    pub real: Value,
    /// Response of the simulated server.
    pub simulated: Value,
}

/// Result of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeResult {
    /// Name of the exchange.
    pub name: String,
    /// Number of steps.
    pub steps: usize,
    /// Steps that differ.
    pub differences: Vec<Difference>,
}

/// An exchange that cannot be compared.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The recording cannot be read.
    #[error("{}: {reason}", path.display())]
    Record {
        /// Path of the recording.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// It could not start.
    #[error(transparent)]
    Run(#[from] ScriptRunError),
    /// The address of the server is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Runs an exchange with a new simulated server.
///
/// # Errors
/// If it has no recording, or cannot start.
pub async fn compare(script: &Script, directory: &Path) -> Result<ExchangeResult, ExchangeError> {
    let real = read_recording(script, directory)?;
    let target = Target::new(&format!("http://{AUTHORITY}"), None, Some(TOKEN))?;
    let transcript = run_script(script, &target, SimulatedServer::new(script.controllers), OnFailure::Record).await?;
    let simulated = normalise_transcript(script, &target, &transcript);
    Ok(ExchangeResult { name: script.name.clone(), steps: real.len(), differences: differences(&real, &simulated) })
}

fn read_recording(script: &Script, directory: &Path) -> Result<Vec<Value>, ExchangeError> {
    let path = directory.join(exchange_file(&script.name));
    let failed = |reason: String| ExchangeError::Record { path: path.clone(), reason };
    let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    let record: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let steps = record.get("steps").and_then(Value::as_array).cloned();
    steps.ok_or_else(|| failed("it has no steps".to_owned()))
}

/// Returns the steps that differ, including those that only one side has.
#[must_use]
pub fn differences(real: &[Value], simulated: &[Value]) -> Vec<Difference> {
    let nothing = Value::Null;
    let count = real.len().max(simulated.len());
    let pair = |index: usize| (real.get(index).unwrap_or(&nothing), simulated.get(index).unwrap_or(&nothing));
    let differs = |index: usize| {
        let (real, simulated) = pair(index);
        (server_parts(real) != server_parts(simulated)).then(|| Difference {
            step: index + 1,
            about: real.get("about").and_then(Value::as_str).unwrap_or_default().to_owned(),
            request: real.get("request").or_else(|| real.get("watch")).cloned().unwrap_or_default(),
            real: server_parts(real),
            simulated: server_parts(simulated),
        })
    };
    (0..count).filter_map(differs).collect()
}

fn server_parts(step: &Value) -> Value {
    let parts = SERVER_PARTS.iter().filter_map(|part| Some(((*part).to_owned(), sort_objects(step.get(part)?))));
    if step.is_null() { json!({"missing": true}) } else { Value::Object(parts.collect()) }
}

/// Start of an object in an error message. Its fields have the order of Go's structs, which no document specifies.
const OBJECT_START: &str = "Invalid value: \"";

/// Sorts the fields of objects in error messages.
fn sort_objects(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains(OBJECT_START) => json!(sort_objects_in_text(text)),
        Value::Array(list) => list.iter().map(sort_objects).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), sort_objects(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn sort_objects_in_text(text: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(OBJECT_START) {
        let start = at + OBJECT_START.len() - 1;
        let mut quoted = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<String>();
        let shown = quoted.next().and_then(Result::ok);
        let end = start + quoted.byte_offset();
        let sorted = shown.and_then(|shown| serde_json::from_str::<Value>(&shown).ok()).filter(Value::is_object);
        match sorted {
            Some(mut object) => {
                // Managed fields are sorted by times in whole seconds, which differ between the servers.
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
    fn only_responses_are_compared() {
        let step =
            |path: &str, status: u16| json!({"about": "a", "request": {"path": path}, "response": {"status": status}});
        assert_eq!(differences(&[step("/x", 200)], &[step("/y", 200)]), []);
        let found = differences(&[step("/x", 200), step("/x", 200)], &[step("/x", 200), step("/x", 404)]);
        assert_eq!(found.iter().map(|difference| difference.step).collect::<Vec<_>>(), [2]);
        assert_eq!(found[0].request, json!({"path": "/x"}));
    }

    #[test]
    fn objects_in_errors_are_compared_without_the_order_of_their_fields() {
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
    fn a_missing_step_differs() {
        assert_eq!(differences(&[json!({"response": 1})], &[]).len(), 1);
        assert_eq!(differences(&[], &[json!({"response": 1})]).len(), 1);
    }
}
