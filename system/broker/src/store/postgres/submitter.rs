//! Runs submissions: those that wait together share a transaction and its statements.
//!
//! One transaction after another: two at once would wait for the one counter anyway, and are measured to cost more.

use std::sync::Arc;

use deadpool_postgres::Pool;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::origin::Origin;
use super::pool::CALL_MAX;
use super::transaction::transact;
use crate::store::records::StoreError;
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::{Access, Operation};
use crate::store::sql::observer_slot::ObserverSlot;
use crate::store::sql::stacks::submissions::{PendingSubmission, append_all, send_results};

/// Largest number of submissions that share a transaction.
const BATCH_MAX: usize = 64;

/// Executes the submissions of a store.
pub struct Submitter {
    pub(super) pool: Pool,
    pub(super) origin: Arc<Origin>,
    pub(super) pending: mpsc::Receiver<PendingSubmission>,
    pub(super) observer: ObserverSlot,
    pub(super) cipher: CipherSlot,
}

impl Submitter {
    /// Runs until the store is dropped.
    pub async fn run(mut self) {
        let mut batch = Vec::new();
        while self.pending.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let awaited = batch.drain(..).filter(|pending| pending.is_awaited(CALL_MAX));
            let (submissions, callers): (Vec<_>, Vec<_>) =
                awaited.map(|pending| (pending.submission, pending.caller)).unzip();
            if callers.is_empty() {
                continue;
            }
            let operation: Operation<_> = Box::new(|session| Box::pin(append_all(session, submissions)));
            let done = transact(&self.pool, &self.origin, &self.observer, &self.cipher, Access::Write, operation);
            // A connection that does not respond is closed, and the next submissions use another one.
            send_results(callers, timeout(CALL_MAX, done).await.unwrap_or(Err(StoreError::Unavailable)));
        }
    }
}
