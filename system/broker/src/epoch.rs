//! Epochs: detects that the database was restored from a backup, and begins a new epoch.
//!
//! The proof is an ETag that a broker of this database has signed and whose version the database has not reached yet.

use sindri_model::{AgentId, Epoch};

use crate::broker::Broker;
use crate::store::{RestoreEvidence, StoreError, TargetState};

impl Broker {
    /// Begins a new epoch if an agent's ETag proves that the database was restored; returns true if it did.
    pub(crate) async fn detect_restore(
        &self,
        agent: AgentId,
        state: &TargetState,
        if_none_match: &[u8],
    ) -> Result<bool, StoreError> {
        let header = std::str::from_utf8(if_none_match).unwrap_or_default();
        let Some(seen) = self.etag_key.verify(agent, header) else { return Ok(false) };
        if seen <= (state.epoch, state.version) {
            return Ok(false);
        }
        // Another broker may have written since `state` was read; only the counter has the highest version.
        let position = self.store.get_position().await?;
        if seen <= (position.epoch, position.latest) {
            return Ok(false);
        }
        self.begin_epoch(seen.0, format!("agent {agent} has seen epoch {} number {}", seen.0, seen.1)).await?;
        Ok(true)
    }

    /// Begins a new epoch if the database server is another one than before, or if the counter is below a number that
    /// was committed: the database was restored, or a replica was promoted.
    pub async fn detect_replacement(&self, evidence: RestoreEvidence) -> Result<(), StoreError> {
        if let Some(position) = self.store.record_origin(self.write_context(), evidence.clone()).await? {
            let origin = evidence.origin.as_deref().unwrap_or("unknown");
            tracing::warn!(epoch = position.epoch.0, origin, "the database was replaced: a new epoch begins");
        }
        Ok(())
    }

    /// Begins a new epoch, because the database was restored.
    pub async fn record_restore(&self, reason: String) -> Result<Epoch, StoreError> {
        let position = self.store.get_position().await?;
        self.begin_epoch(position.epoch, reason).await
    }

    async fn begin_epoch(&self, above: Epoch, reason: String) -> Result<Epoch, StoreError> {
        let position = self.store.begin_epoch(self.write_context(), above, reason.clone()).await?;
        tracing::warn!(epoch = position.epoch.0, reason, "the database was restored: a new epoch begins");
        Ok(position.epoch)
    }
}
