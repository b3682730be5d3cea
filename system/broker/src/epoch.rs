//! Notices that the database was restored from a backup: an agent shows an identity that a broker of this database
//! has signed, and the database does not know it yet.

use sindri_model::{AgentId, Epoch};

use crate::broker::Broker;
use crate::store::{StoreError, TargetState};

impl Broker {
    /// Whether the database turned out to be behind what an agent has seen. It has a new epoch then.
    pub(crate) async fn is_behind(
        &self,
        agent: AgentId,
        desired: &TargetState,
        if_none_match: &[u8],
    ) -> Result<bool, StoreError> {
        let header = std::str::from_utf8(if_none_match).unwrap_or_default();
        let Some(seen) = self.etag_key.read(agent, header) else { return Ok(false) };
        if seen <= (desired.epoch, desired.version) {
            return Ok(false);
        }
        // Another broker may have moved on meanwhile; only the counter says what was ever given out.
        let era = self.store.get_position().await?;
        if seen <= (era.epoch, era.latest) {
            return Ok(false);
        }
        self.begin_epoch(seen.0, format!("agent {agent} has seen epoch {} number {}", seen.0, seen.1)).await?;
        Ok(true)
    }

    /// Starts a new epoch if the database lives elsewhere than before: it was restored there, or promoted.
    pub async fn settle_origin(&self, origin: String) -> Result<(), StoreError> {
        if self.store.record_origin(origin.clone()).await? {
            self.restored(format!("the database now lives at {origin}")).await?;
        }
        Ok(())
    }

    /// Starts a new epoch: the database was restored.
    pub async fn restored(&self, why: String) -> Result<Epoch, StoreError> {
        let era = self.store.get_position().await?;
        self.begin_epoch(era.epoch, why).await
    }

    /// Starts a new epoch, above the one that was seen.
    async fn begin_epoch(&self, above: Epoch, why: String) -> Result<Epoch, StoreError> {
        let era = self.store.begin_epoch(self.stamp(), above, why.clone()).await?;
        tracing::warn!(epoch = era.epoch.0, why, "the database was restored: a new epoch begins");
        Ok(era.epoch)
    }
}
