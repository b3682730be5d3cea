//! Submissions: those that wait together share a transaction and its statements.
//!
//! One transaction after another: two at once would wait for the one counter anyway, and cost more (measured).

use std::sync::{Arc, OnceLock};

use deadpool_postgres::Pool;
use tokio::sync::mpsc;

use super::transact;
use crate::store::records::Watcher;
use crate::store::sql::stacks::submissions::{Waiting, answer, append_all};

/// The most submissions that share a transaction.
const BATCH_MAX: usize = 64;

/// Carries out the submissions of a store.
pub struct Submitter {
    pub(super) pool: Pool,
    pub(super) waiting: mpsc::Receiver<Waiting>,
    pub(super) watcher: Arc<OnceLock<Watcher>>,
}

impl Submitter {
    /// Until the store is dropped.
    pub async fn run(mut self) {
        let mut batch = Vec::new();
        while self.waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let (submissions, callers): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|waiting| (waiting.submission, waiting.caller)).unzip();
            let done =
                transact(&self.pool, &self.watcher, Box::new(|session| Box::pin(append_all(session, submissions))));
            answer(callers, done.await);
        }
    }
}
