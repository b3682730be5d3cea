//! Replacing an object whose change the server refuses: only where the object asks for it, and only if the new one is
//! sure to be accepted once the old one is gone.

use sindri_model::ObjectKey;

use super::backoff::Patience;
use super::executor::{ActError, Executor, GONE_WAIT_MAX};
use crate::cluster::ownership::Sent;
use crate::cluster::{ClusterError, Mode, Patch};
use crate::pass::plan::{Stage, Write};

/// A name that nobody has: what is checked under it is checked as if it were new.
const CHECK_NAME: &str = "sindri-check-before-replacing";

impl Executor<'_> {
    /// The identity of an object that can be deleted and made anew; else why it cannot.
    pub(super) async fn replaceable(&self, write: &Write, refused: ClusterError) -> Result<String, ClusterError> {
        let object = &write.object;
        if takes_more_along(&object.key) {
            return Err(refused.hinted("it is not replaced: what it holds would go with it"));
        }
        let Some(live) = self.cluster.metadata(&object.resource, &object.key).await? else { return Err(refused) };
        let key = ObjectKey { name: CHECK_NAME.to_owned(), ..ObjectKey::clone(&object.key) };
        let checked = Sent { manifest: &object.manifest, owner: &object.owner, key: &key };
        let patch = Patch::new(&object.resource, &key, &checked);
        match self.cluster.apply_unseen(&patch, Mode::DryRun).await {
            Ok(()) => Ok(live.uid),
            // It would be gone, and nothing in its place.
            Err(_) => Err(refused.hinted("it is not replaced: a new one would not be valid either")),
        }
    }

    /// Deletes the object that is in the way, and waits until it is gone.
    pub(super) async fn make_room(&self, write: &Write, uid: &str) -> Result<(), ActError> {
        let object = &write.object;
        self.cluster.delete(&object.resource, &object.key, uid).await?;
        tracing::info!("deleted {}, which is replaced", object.key);
        let mut patience = Patience::new(GONE_WAIT_MAX);
        while self.cluster.metadata(&object.resource, &object.key).await?.is_some_and(|live| live.uid == uid) {
            if !patience.pause().await {
                return Err(ActError::NotReplaced { key: object.key.clone() });
            }
        }
        Ok(())
    }
}

fn takes_more_along(key: &ObjectKey) -> bool {
    Stage::of(key).comes_before_validation() || Stage::of(key) == Stage::Storage
}
