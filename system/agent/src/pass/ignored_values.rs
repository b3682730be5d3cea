//! Live values of ignored fields, copied into the manifests that are about to be applied.

use std::sync::Arc;

use serde_json::Value;

use super::desired::DesiredObject;
use super::plan::Write;
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{Cluster, ClusterError};

/// Sets ignored fields of the writes to their live values, so that the validation and the comparison see what is applied.
pub async fn copy_ignored_fields(cluster: &Cluster, writes: &mut [Write]) -> Result<(), ClusterError> {
    // An object that does not exist has no live values, and its kind may not be served yet.
    let has_values = |write: &&mut Write| write.uid.is_some() && !write.object.ignored.is_empty();
    let ignoring: Vec<&mut Write> = writes.iter_mut().filter(has_values).collect();
    let copy = |write| async move {
        let write: &mut Write = write;
        (write.object, _) = read_ignored_fields(cluster, &write.object).await?;
        Ok(())
    };
    run_concurrently(ignoring, copy).await.into_iter().collect()
}

/// Returns an object with its ignored fields set to their live values, and the live object if there is one.
pub async fn read_ignored_fields(
    cluster: &Cluster,
    object: &Arc<DesiredObject>,
) -> Result<(Arc<DesiredObject>, Option<Value>), ClusterError> {
    let mut object = object.clone();
    let live: Option<Value> = cluster.get(&object.resource, &object.key).await?;
    if let Some(live) = &live {
        let DesiredObject { ignored, manifest, .. } = Arc::make_mut(&mut object);
        ignored.copy_live_values(manifest, live);
    }
    Ok((object, live))
}
