//! Live values of ignored fields, copied into the manifests that are about to be applied.

use std::sync::Arc;

use super::desired::DesiredObject;
use super::plan::Write;
use crate::cluster::{Cluster, ClusterError};

/// Sets ignored fields of the writes to their live values, so that applying does not change them.
pub async fn copy_ignored_fields(cluster: &Cluster, writes: &mut [Write]) -> Result<(), ClusterError> {
    for write in writes.iter_mut().filter(|write| !write.object.ignored.is_empty()) {
        if let Some(live) = cluster.get(&write.object.resource, &write.object.key).await? {
            let DesiredObject { ignored, manifest, .. } = Arc::make_mut(&mut write.object);
            ignored.copy_live_values(manifest, &live);
        }
    }
    Ok(())
}
