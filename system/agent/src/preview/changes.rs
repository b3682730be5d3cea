//! The fields that the writes of a plan would change, by dry runs.

use serde_json::Value;

use super::diff::diff;
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{Cluster, ClusterError};
use crate::pass::act::is_explained_by_earlier_write;
use crate::pass::plan::Write;
use crate::pass::stage::Stage;

/// Result of the dry run of one write.
pub struct FoundChanges {
    /// A line for each field that would change, or the error of the server.
    pub lines: Vec<String>,
    /// True if the write would fail.
    pub has_error: bool,
}

impl FoundChanges {
    fn from_error(error: &ClusterError) -> Self {
        Self { lines: vec![format!("! {error}")], has_error: true }
    }
}

/// Returns the changes of each write. `write_cluster` is the client of a pass for writes.
pub async fn find_all_changes(cluster: &Cluster, write_cluster: &Cluster, writes: &[Write]) -> Vec<FoundChanges> {
    let find = async |write| find_changes(cluster, write_cluster, write, writes).await;
    run_concurrently(writes.iter().collect(), find).await
}

async fn find_changes(cluster: &Cluster, write_cluster: &Cluster, write: &Write, writes: &[Write]) -> FoundChanges {
    let object = &write.object;
    // An object that a plan creates is not read: its type may not be served yet.
    let before: Option<Value> = match write.uid {
        None => None,
        Some(_) => match cluster.get(&object.resource, &object.key).await {
            Ok(before) => before,
            Err(error) => return FoundChanges::from_error(&error),
        },
    };
    let before = before.unwrap_or(Value::Null);
    let (after, note) = match write_cluster.dry_run_apply(&object.to_patch(None)).await {
        Ok(after) => (after, None),
        Err(error) if is_created_first(&error, write, writes) => {
            (object.manifest.clone(), Some("(not validated before the objects exist that it needs)".to_owned()))
        }
        Err(error) if error.is_invalid() && object.replace && write.uid.is_some() => {
            let note = format!("(deleted and created again, because the server rejects the change: {error})");
            (object.manifest.clone(), Some(note))
        }
        Err(error) => return FoundChanges::from_error(&error),
    };
    let is_replaced = write.uid.is_some() && note.is_some();
    // A manifest is not comparable with an object that has the defaults of the server.
    let lines = if is_replaced { Vec::new() } else { diff(&object.key, &before, &after) };
    FoundChanges { lines: lines.into_iter().chain(note).collect(), has_error: false }
}

/// Returns true if the server has rejected an object because the same plan creates its namespace, its type or another object
/// that it needs.
fn is_created_first(rejection: &ClusterError, write: &Write, writes: &[Write]) -> bool {
    let resource = &write.object.resource;
    let name = format!("{}.{}", resource.plural, resource.group);
    let is_type = |other: &Write| other.stage == Stage::Crds && other.object.key.name == name;
    rejection.is_not_found() && writes.iter().any(is_type) || is_explained_by_earlier_write(rejection, write, writes)
}
