//! Submissions: those that wait together share a transaction and its statements.
//!
//! One transaction after another: two at once would wait for the one counter anyway, and cost more (measured).

use std::sync::{Arc, OnceLock};

use deadpool_postgres::Pool;
use tokio::sync::mpsc;

use super::transact;
use crate::store::Watcher;
use crate::store::sql::submissions::{Waiting, answer, append_all};

/// The most submissions that share a transaction.
const BATCH_MAX: usize = 64;

/// Until the store is dropped.
pub(super) async fn carry_out_all(pool: Pool, mut waiting: mpsc::Receiver<Waiting>, watcher: Arc<OnceLock<Watcher>>) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let (submissions, callers): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|waiting| (waiting.submission, waiting.caller)).unzip();
        let done = transact(&pool, &watcher, Box::new(|session| Box::pin(append_all(session, submissions)))).await;
        answer(callers, done);
    }
}
