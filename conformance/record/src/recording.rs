//! A recording as a whole: the version, the documents, and every exchange.

use http_body_util::Full;
use serde_json::{Value, json};
use thiserror::Error;

use crate::connection::{Connection, ConnectionError};
use crate::documents::{DocumentError, documents};
use crate::files::{Files, pretty};
use crate::normalise::{Known, normalise};
use crate::play::{Impossible, PlayError, Played, play};
use crate::script::Script;
use crate::server::Connected;
use crate::target::Target;

/// The file that says which version was recorded.
pub const VERSION_FILE: &str = "version.json";

/// A recording that could not be made.
#[derive(Debug, Error)]
pub enum RecordError {
    /// No answer at all.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A document could not be had.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// An exchange did not take place.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// The version and the documents. To be asked of a server that has no definitions yet.
pub async fn record_documents(target: &Target) -> Result<Files, RecordError> {
    let mut files = documents(target).await?;
    files.insert(VERSION_FILE.to_owned(), pretty(&json!({"gitVersion": version(target).await?})));
    Ok(files)
}

/// The path of an exchange's record.
pub fn exchange_file(name: &str) -> String {
    format!("exchanges/{name}.json")
}

/// One exchange, normalised.
pub async fn record_exchange(script: &Script, target: &Target) -> Result<(String, String), RecordError> {
    let played = play(script, target, Connected::new(target), Impossible::Fails).await?;
    let steps = normalised(script, target, &played);
    let record = json!({"about": script.about, "controllers": script.controllers, "steps": steps});
    Ok((exchange_file(&script.name), pretty(&record)))
}

/// The steps of an exchange as they are written down.
pub fn normalised(script: &Script, target: &Target, played: &Played) -> Vec<Value> {
    let known = Known {
        script: &script.text,
        bodies: &played.bodies,
        object_versions: &played.object_versions,
        list_versions: &played.list_versions,
        authority: &target.authority,
    };
    normalise(&played.steps, known)
}

/// What the server calls itself, such as `v1.35.4`.
pub async fn version(target: &Target) -> Result<Value, ConnectionError> {
    let request = target.request("GET", "/version").body(Full::default());
    let request = request.map_err(|error| ConnectionError::Body(error.to_string()))?;
    let answer = Connection::open(target).await?.send(request).await?;
    Ok(answer.json()["gitVersion"].clone())
}
