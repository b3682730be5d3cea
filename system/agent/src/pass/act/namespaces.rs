//! Namespaces that a pass made, and takes back when a later step fails.

use std::collections::BTreeSet;
use std::sync::Arc;

use sindri_model::ObjectKey;

use super::executor::{Done, Executor};
use crate::cluster::Resource;
use crate::pass::foreign_objects;
use crate::pass::plan::{Stage, Write};

/// A namespace that did not exist before this pass.
pub struct NewNamespace {
    key: Arc<ObjectKey>,
    resource: Arc<Resource>,
    uid: String,
}

impl NewNamespace {
    /// The one that a write made, if it did.
    pub fn of(write: &Write, done: &Done) -> Option<Self> {
        let made = done.applied.get(&write.object.key).filter(|applied| applied.created)?;
        let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
        (write.stage == Stage::Namespaces).then(|| Self { key, resource, uid: made.live.uid.clone() })
    }
}

impl Executor<'_> {
    /// Deletes the namespaces of a failed pass, unless something else moved in, or nobody can tell.
    pub(super) async fn take_back(&self, made: &[NewNamespace], done: &Done) {
        for namespace in made {
            let ours: BTreeSet<&str> = done.applied.values().map(|applied| applied.live.uid.as_str()).collect();
            let held = foreign_objects::in_namespace(self.cluster, self.inventory, &namespace.key.name, &ours).await;
            match held.map(|held| held.into_iter().next()) {
                Ok(None) => {}
                Ok(Some(held)) => {
                    tracing::info!("kept {}, which holds {held}", namespace.key);
                    continue;
                }
                Err(error) => {
                    tracing::info!("kept {}, whose content cannot be read: {error}", namespace.key);
                    continue;
                }
            }
            match self.cluster.delete(&namespace.resource, &namespace.key, &namespace.uid).await {
                Ok(_) => tracing::info!("took back {}, which was made in this pass", namespace.key),
                Err(error) => tracing::warn!("could not take back {}: {error}", namespace.key),
            }
        }
    }
}
