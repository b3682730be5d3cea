//! Notices that the database was replaced while the broker runs: by a failover that lost commits, or by a restore.
//!
//! The evidence is a new connection to a server with another system identifier or timeline, or a counter below a number
//! that this broker has seen committed. From then on every call fails with [`StoreError::Unavailable`] until a new
//! epoch has begun, so that no sequence is issued twice.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use deadpool_postgres::ClientWrapper;
use sindri_model::Sequence;
use tokio::sync::Notify;

use crate::store::records::{RestoreEvidence, StoreError};

/// The WAL file names the timeline of the running server; the control file has an older one until the first checkpoint
/// after a promotion.
const ORIGIN: &str = "SELECT system_identifier::text || '/' || greatest(timeline_id,
      ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer)::text
    FROM pg_control_system(), pg_control_checkpoint()";

/// Origin and counter of the database as this broker knows them.
#[derive(Default)]
pub(super) struct Origin {
    state: Mutex<OriginState>,
    replaced: Notify,
}

#[derive(Default)]
struct OriginState {
    /// System identifier and timeline of the server. None: no connection was able to read them.
    current: Option<String>,
    /// Highest number of the counter that is known to be committed.
    seen: Sequence,
    /// True if the database was replaced and no epoch has begun since.
    is_replaced: bool,
    /// Creation of the first connection to the current server. Older connections are not used again.
    connected_since: Option<Instant>,
}

impl Origin {
    /// Compares the server of a new connection with that of the connections before it.
    pub(super) async fn check_connection(&self, client: &ClientWrapper, created: Instant) {
        let Some(origin) = read_origin(client).await else { return };
        let mut state = self.lock();
        if state.current.as_ref() == Some(&origin) {
            return;
        }
        if state.current.replace(origin).is_some() {
            state.connected_since = Some(created);
            self.record_replacement(&mut state);
        }
    }

    /// Returns true if a connection of this age goes to the current server.
    pub(super) fn is_current(&self, created: Instant) -> bool {
        self.lock().connected_since.is_none_or(|since| created >= since)
    }

    /// Fails while the database is replaced and no epoch has begun since.
    pub(super) fn check_confirmed(&self) -> Result<(), StoreError> {
        if self.lock().is_replaced { Err(StoreError::Unavailable) } else { Ok(()) }
    }

    /// Returns the highest number of the counter that is known to be committed. Call it before a transaction begins:
    /// the counter that the transaction reads must not be below it.
    pub(super) fn seen(&self) -> Sequence {
        self.lock().seen
    }

    /// Records a number of the counter that is committed.
    pub(super) fn record_committed(&self, number: Sequence) {
        let mut state = self.lock();
        state.seen = state.seen.max(number);
    }

    /// Fails if the counter is below a number that was committed before it was read.
    pub(super) fn check_counter(&self, counter: Sequence, seen: Sequence) -> Result<(), StoreError> {
        if counter >= seen {
            return Ok(());
        }
        self.record_replacement(&mut self.lock());
        Err(StoreError::Unavailable)
    }

    /// Completes when the database was replaced.
    pub(super) async fn await_replacement(&self) -> RestoreEvidence {
        loop {
            let replaced = self.replaced.notified();
            if let Some(evidence) = self.evidence() {
                return evidence;
            }
            replaced.await;
        }
    }

    /// Accepts calls again after an epoch has begun, unless the database was replaced once more.
    pub(super) fn confirm(&self, evidence: &RestoreEvidence) {
        let mut state = self.lock();
        if state.current == evidence.origin {
            // The counter of the new epoch is above every number seen, and may be read before it is recorded here.
            state.is_replaced = false;
        }
    }

    /// Returns system identifier and timeline of the server, if they can be read.
    pub(super) fn current(&self) -> Option<String> {
        self.lock().current.clone()
    }

    fn evidence(&self) -> Option<RestoreEvidence> {
        let state = self.lock();
        state.is_replaced.then(|| RestoreEvidence { origin: state.current.clone(), seen: state.seen })
    }

    fn record_replacement(&self, state: &mut OriginState) {
        state.is_replaced = true;
        self.replaced.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, OriginState> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns system identifier and timeline of a server. None if the user may not read them, or if the server is a standby.
async fn read_origin(client: &ClientWrapper) -> Option<String> {
    client.query_one(ORIGIN, &[]).await.ok()?.try_get(0).ok()
}
