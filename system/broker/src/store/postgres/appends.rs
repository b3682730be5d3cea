//! Submissions: those that wait together share a transaction and its statements.

use std::sync::{Arc, OnceLock};

use deadpool_postgres::Pool;
use tokio::sync::mpsc;

use super::session::PostgresSession;
use super::{failed, tell};
use crate::store::sql::submissions::{Outcome, Submission, Waiting, answer, append_all};
use crate::store::{Change, StoreError, Watcher};

/// The most submissions that share a transaction.
const BATCH_MAX: usize = 64;

/// Until the store is dropped.
pub(super) async fn carry_out_all(pool: Pool, mut waiting: mpsc::Receiver<Waiting>, watcher: Arc<OnceLock<Watcher>>) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let (submissions, callers) =
            batch.drain(..).map(|waiting| (waiting.submission, waiting.caller)).unzip::<_, _, Vec<_>, Vec<_>>();
        let done = carry_out(&pool, submissions).await;
        let outcomes = done.map(|(outcomes, changes)| {
            tell(&watcher, &changes);
            outcomes
        });
        answer(callers, outcomes);
    }
}

async fn carry_out(pool: &Pool, submissions: Vec<Submission>) -> Result<(Vec<Outcome>, Vec<Change>), StoreError> {
    let mut client = pool.get().await.map_err(|_| StoreError::Unavailable)?;
    let transaction = client.transaction().await.map_err(|error| failed(&error))?;
    let mut session = PostgresSession::new(&transaction);
    let outcomes = append_all(&mut session, submissions).await?;
    session.notify().await?;
    let changes = session.changes;
    transaction.commit().await.map_err(|error| failed(&error))?;
    Ok((outcomes, changes))
}
