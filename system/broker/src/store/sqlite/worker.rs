//! Carries out what waits, in its order: all of it in one transaction, each verb in a savepoint of its own.
//!
//! A verb that fails leaves nothing; the others are not disturbed. Nobody is answered before everything is durable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::session::SqliteSession;
use super::tell;
use crate::store::records::{Change, StoreError, Watcher};
use crate::store::sql::database::Deed;
use crate::store::sql::stacks::submissions::{Outcome, Waiting, answer, append_all};

/// The most verbs that share a transaction.
const BATCH_MAX: usize = 64;

/// A verb and, once it was carried out, its result.
pub(super) struct Task<T> {
    deed: Option<Deed<T>>,
    result: Result<T, StoreError>,
}

impl<T> Task<T> {
    pub(super) fn new(deed: Deed<T>) -> Self {
        Self { deed: Some(deed), result: Err(StoreError::Unavailable) }
    }

    pub(super) fn into_result(self) -> Result<T, StoreError> {
        self.result
    }
}

/// A verb of whatever result.
pub(super) trait Work {
    /// Carries it out; says whether it succeeded.
    fn perform(&mut self, session: &mut SqliteSession<'_>) -> bool;
    /// What it did is not durable after all.
    fn undone(&mut self, error: StoreError);
}

impl<T> Work for Task<T> {
    fn perform(&mut self, session: &mut SqliteSession<'_>) -> bool {
        let Some(deed) = self.deed.take() else { return false };
        // A verb that panics must not take the thread, and with it every other verb, along.
        let done = catch_unwind(AssertUnwindSafe(|| deed(session).now_or_never()));
        self.result = match done {
            Ok(result) => result.expect("SQLite answers at once"),
            Err(_) => Err(StoreError::Failed("a verb of the store panicked".to_owned())),
        };
        self.result.is_ok()
    }

    fn undone(&mut self, error: StoreError) {
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }
}

/// Carries out verbs in one transaction; says what they changed.
pub(super) fn carry_out(connection: &mut Connection, batch: &mut [&mut dyn Work]) -> Vec<Change> {
    match attempt(connection, batch) {
        Ok(changes) => changes,
        Err(error) => {
            // The transaction may be over already; if it is not, nothing of it may stay.
            let _ = connection.execute_batch("ROLLBACK");
            batch.iter_mut().for_each(|work| work.undone(error.clone().into()));
            Vec::new()
        }
    }
}

fn attempt(connection: &mut Connection, batch: &mut [&mut dyn Work]) -> Result<Vec<Change>, Stopped> {
    let mut session = SqliteSession::new(connection);
    session.run("BEGIN")?;
    let is_alone = batch.len() == 1;
    for work in batch.iter_mut() {
        let before = session.changes.len();
        if !is_alone {
            session.run("SAVEPOINT verb")?;
        }
        let succeeded = work.perform(&mut session);
        if !succeeded {
            session.changes.truncate(before);
        }
        match (is_alone, succeeded) {
            (true, true) => {}
            (true, false) => {
                session.run("ROLLBACK")?;
                return Ok(Vec::new());
            }
            (false, true) => session.run("RELEASE verb")?,
            (false, false) => {
                session.run("ROLLBACK TO verb")?;
                session.run("RELEASE verb")?;
            }
        }
    }
    session.run("COMMIT")?;
    Ok(session.changes)
}

/// SQLite could not begin, end or divide a transaction.
#[derive(Clone)]
pub(super) struct Stopped(pub String);

impl From<Stopped> for StoreError {
    fn from(Stopped(reason): Stopped) -> Self {
        Self::Failed(reason)
    }
}

/// What waits for the thread.
pub(super) enum Job {
    Verb(Box<dyn Queued>),
    Submission(Waiting),
}

/// Work and its callers.
pub(super) trait Queued: Send {
    fn work(&mut self) -> &mut dyn Work;
    fn answer(self: Box<Self>);
}

struct Called<T> {
    task: Task<T>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send> Queued for Called<T> {
    fn work(&mut self) -> &mut dyn Work {
        &mut self.task
    }

    fn answer(self: Box<Self>) {
        // A caller that has gone away is told nothing; what it asked for is done all the same.
        let _ = self.caller.send(self.task.into_result());
    }
}

/// Submissions that wait next to each other: one verb for all of them.
struct Submissions {
    task: Task<Vec<Outcome>>,
    callers: Vec<oneshot::Sender<Outcome>>,
}

impl Queued for Submissions {
    fn work(&mut self) -> &mut dyn Work {
        &mut self.task
    }

    fn answer(self: Box<Self>) {
        answer(self.callers, self.task.into_result());
    }
}

impl Job {
    pub(super) fn verb<T: Send + 'static>(deed: Deed<T>) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (caller, answer) = oneshot::channel();
        (Self::Verb(Box::new(Called { task: Task::new(deed), caller })), answer)
    }
}

/// In their order, with submissions that are next to each other together.
fn gathered(jobs: Vec<Job>) -> Vec<Box<dyn Queued>> {
    let (mut gathered, mut submissions) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Submission(waiting) => submissions.push(waiting),
            Job::Verb(verb) => {
                gathered.extend(together(std::mem::take(&mut submissions)));
                gathered.push(verb);
            }
        }
    }
    gathered.extend(together(submissions));
    gathered
}

fn together(waiting: Vec<Waiting>) -> Option<Box<dyn Queued>> {
    if waiting.is_empty() {
        return None;
    }
    let (submissions, callers) = waiting.into_iter().map(|waiting| (waiting.submission, waiting.caller)).unzip();
    let task = Task::new(Box::new(|session| Box::pin(append_all(session, submissions))));
    Some(Box::new(Submissions { task, callers }))
}

/// Makes the calls of a store, on the thread of whoever runs it.
pub struct Worker {
    pub(super) connection: Connection,
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) watcher: Arc<OnceLock<Watcher>>,
}

impl Worker {
    /// Until the store is dropped.
    pub fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut jobs = vec![first];
            while jobs.len() < BATCH_MAX
                && let Ok(next) = self.jobs.try_recv()
            {
                jobs.push(next);
            }
            let mut batch = gathered(jobs);
            let mut works: Vec<&mut dyn Work> = batch.iter_mut().map(|queued| queued.work()).collect();
            let changes = carry_out(&mut self.connection, &mut works);
            tell(&self.watcher, &changes);
            batch.into_iter().for_each(|queued| queued.answer());
        }
    }
}
