//! Records the version, the documents and single exchanges.

use http_body_util::Full;
use serde_json::{Value, json};
use thiserror::Error;

use crate::connection::{Connection, ConnectionError};
use crate::documents::{DocumentError, read_documents};
use crate::files::{Files, pretty};
use crate::normalise::{ExchangeData, normalise};
use crate::script::Script;
use crate::script_runner::{OnFailure, ScriptRunError, Transcript, run_script};
use crate::server::RemoteServer;
use crate::target::Target;

/// File with the recorded version.
pub const VERSION_FILE: &str = "version.json";

/// A recording that could not be made.
#[derive(Debug, Error)]
pub enum RecordError {
    /// No response.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A document could not be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// An exchange failed.
    #[error(transparent)]
    Script(#[from] ScriptRunError),
}

/// Records the version and the documents. The server must not have any CRDs yet.
pub async fn record_documents(target: &Target) -> Result<Files, RecordError> {
    let mut files = read_documents(target).await?;
    files.insert(VERSION_FILE.to_owned(), pretty(&json!({"gitVersion": read_version(target).await?})));
    Ok(files)
}

/// Returns the path of the recording of an exchange.
pub fn exchange_file(name: &str) -> String {
    format!("exchanges/{name}.json")
}

/// Records one exchange. Returns the path and the content of its file.
pub async fn record_exchange(script: &Script, target: &Target) -> Result<(String, String), RecordError> {
    let transcript = run_script(script, target, RemoteServer::new(target), OnFailure::Abort).await?;
    let steps = normalise_transcript(script, target, &transcript);
    let record = json!({"about": script.about, "controllers": script.controllers, "steps": steps});
    Ok((exchange_file(&script.name), pretty(&record)))
}

/// Returns the steps of an exchange with placeholders for volatile values.
pub fn normalise_transcript(script: &Script, target: &Target, transcript: &Transcript) -> Vec<Value> {
    let data = ExchangeData {
        script: &script.text,
        bodies: &transcript.bodies,
        object_versions: &transcript.object_versions,
        list_versions: &transcript.list_versions,
        authority: &target.authority,
    };
    let steps: Vec<Value> = transcript.steps.iter().map(|step| mask(step, &transcript.masked)).collect();
    normalise(&steps, data)
}

/// Replaces texts by placeholders.
fn mask(value: &Value, masked: &[(String, &'static str)]) -> Value {
    match value {
        Value::String(text) => {
            json!(masked.iter().fold(text.clone(), |text, (masked, placeholder)| text.replace(masked, placeholder)))
        }
        Value::Array(elements) => elements.iter().map(|element| mask(element, masked)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), mask(field, masked))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Reads the version of the server, such as `v1.35.4`.
pub async fn read_version(target: &Target) -> Result<Value, ConnectionError> {
    let request = target.request("GET", "/version").body(Full::default());
    let request = request.map_err(|error| ConnectionError::Body(error.to_string()))?;
    let response = Connection::open(target).await?.send(request).await?;
    Ok(response.json()["gitVersion"].clone())
}
