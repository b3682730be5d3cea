//! Submissions: those that wait together share a transaction.
//!
//! Each of these verbs checks everything before it writes anything, so one that is refused leaves nothing behind. If
//! the database itself fails, all of the transaction fails.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use deadpool_postgres::Pool;
use tokio::sync::{mpsc, oneshot};

use super::session::PostgresSession;
use super::{failed, tell};
use crate::store::sql::database::Deed;
use crate::store::sql::session::Session;
use crate::store::{Change, StoreError, Watcher};

/// The most submissions that share a transaction.
const BATCH_MAX: usize = 64;

/// A submission and its caller.
pub(super) struct Job(Box<dyn Queued>);

type Performed<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'a>>;

trait Queued: Send {
    /// Carries it out. An error is of the database: a refusal is kept for the caller.
    fn perform<'a>(&'a mut self, session: &'a mut dyn Session) -> Performed<'a>;
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

struct Waiting<T> {
    deed: Option<Deed<T>>,
    result: Result<T, StoreError>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send> Queued for Waiting<T> {
    fn perform<'a>(&'a mut self, session: &'a mut dyn Session) -> Performed<'a> {
        Box::pin(async {
            let Some(deed) = self.deed.take() else { return Ok(()) };
            self.result = deed(session).await;
            match &self.result {
                Err(error @ StoreError::Failed(_)) => Err(error.clone()),
                Ok(_) | Err(_) => Ok(()),
            }
        })
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let result = failure.map_or(self.result, Err);
        // A caller that has gone away is told nothing; what it asked for is done all the same.
        let _ = self.caller.send(result);
    }
}

impl Job {
    pub(super) fn new<T: Send + 'static>(deed: Deed<T>) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (caller, answer) = oneshot::channel();
        (Self(Box::new(Waiting { deed: Some(deed), result: Err(StoreError::Unavailable), caller })), answer)
    }
}

/// Until the store is dropped.
pub(super) async fn carry_out_all(pool: Pool, mut jobs: mpsc::Receiver<Job>, watcher: Arc<OnceLock<Watcher>>) {
    let mut batch = Vec::new();
    while jobs.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let done = carry_out(&pool, &mut batch).await;
        let failure = done.as_ref().err().cloned();
        tell(&watcher, &done.unwrap_or_default());
        batch.drain(..).for_each(|job| job.0.answer(failure.clone()));
    }
}

async fn carry_out(pool: &Pool, batch: &mut [Job]) -> Result<Vec<Change>, StoreError> {
    let mut client = pool.get().await.map_err(|_| StoreError::Unavailable)?;
    let transaction = client.transaction().await.map_err(|error| failed(&error))?;
    let mut session = PostgresSession::new(&transaction);
    for job in batch {
        job.0.perform(&mut session).await?;
    }
    session.notify().await?;
    let changes = session.changes;
    transaction.commit().await.map_err(|error| failed(&error))?;
    Ok(changes)
}
