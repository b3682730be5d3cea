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
    let parts = ANSWERED.iter().filter_map(|part| Some(((*part).to_owned(), step.get(part)?.clone())));
    if step.is_null() { json!({"missing": true}) } else { Value::Object(parts.collect()) }
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
    fn a_step_that_is_missing_differs() {
        assert_eq!(differences(&[json!({"response": 1})], &[]).len(), 1);
        assert_eq!(differences(&[], &[json!({"response": 1})]).len(), 1);
    }
}
