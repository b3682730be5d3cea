//! Named snapshots of a served machine, which the administrator takes and restores.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shared::SharedServer;
use crate::http::error::ApiError;
use crate::http::request::Request;
use crate::server::ApiServer;

/// Largest number of snapshots.
const SNAPSHOTS_MAX: usize = 100;

/// Snapshots by name.
pub(super) type Snapshots = BTreeMap<String, ApiServer>;

/// Request of the administrator.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Change {
    /// Takes a snapshot of this name, or replaces it.
    Take(String),
    /// Restores the snapshot of this name.
    Restore(String),
}

/// Takes, restores, lists or drops snapshots.
pub(super) fn handle(snapshots: &mut Snapshots, server: &SharedServer, request: &Request) -> Result<Value, ApiError> {
    match request.method {
        Method::GET => {}
        Method::DELETE => snapshots.clear(),
        Method::POST => {
            let change = serde_json::from_slice(&request.body);
            match change.map_err(|error| ApiError::bad_request(error.to_string()))? {
                Change::Take(name) if snapshots.len() >= SNAPSHOTS_MAX && !snapshots.contains_key(&name) => {
                    return Err(ApiError::bad_request(format!("there are {SNAPSHOTS_MAX} snapshots already")));
                }
                Change::Take(name) => drop(snapshots.insert(name, server.with(|machine| machine.clone()))),
                Change::Restore(name) => {
                    let missing = || ApiError::bad_request(format!("there is no snapshot {name:?}"));
                    let snapshot = snapshots.get(&name).ok_or_else(missing)?;
                    server.with(|machine| machine.restore(snapshot));
                    server.wake();
                }
            }
        }
        _ => return Err(ApiError::method_not_allowed()),
    }
    let list: Vec<Value> =
        snapshots.iter().map(|(name, snapshot)| json!({"name": name, "revision": snapshot.revision()})).collect();
    Ok(json!({ "snapshots": list }))
}
