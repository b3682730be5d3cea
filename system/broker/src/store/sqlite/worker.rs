//! Runs queued calls in batches, in their order. No call returns before its batch is durable, and none begins whose caller does not
//! wait any more.

use std::time::Duration;

use rusqlite::Connection;
use sindri_model::wire::DeploymentObject;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::batch::{RunTask, Task, run_batch};
use super::file_lock::FileLock;
use super::session::SqliteSession;
use crate::store::records::StoreError;
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::Operation;
use crate::store::sql::group::{Caller, Grouped, Pending, send_results};
use crate::store::sql::observer_slot::ObserverSlot;
use crate::store::sql::stacks::submissions::Submission;

/// Largest number of calls that share a transaction.
const BATCH_MAX: usize = 64;
/// Longest wait of a call that begins. Its caller waits a little longer, which is the time for the rest of its batch.
const WAIT_MAX: Duration = Duration::from_secs(8);

/// A call that waits for the thread.
pub(super) enum Job {
    Operation(Box<dyn QueuedTask>),
    Submission(Box<Pending<Submission>>),
}

/// A task with the callers that await its result.
pub(super) trait QueuedTask: RunTask + Send {
    fn send_result(self: Box<Self>);
}

struct OperationCall<T> {
    task: Task<T>,
    caller: oneshot::Sender<Result<T, StoreError>>,
    queued_at: Instant,
}

impl<T> OperationCall<T> {
    /// Returns true if the caller still waits, and long enough. A call that has failed must not be carried out later.
    fn is_awaited(&self) -> bool {
        !self.caller.is_closed() && self.queued_at.elapsed() < WAIT_MAX
    }
}

impl<T> RunTask for OperationCall<T> {
    fn run(&mut self, session: &mut SqliteSession<'_>) -> bool {
        self.is_awaited() && self.task.run(session)
    }

    fn revoke(&mut self, error: StoreError) {
        self.task.revoke(error);
    }
}

impl<T: Send> QueuedTask for OperationCall<T> {
    fn send_result(self: Box<Self>) {
        // The caller may have stopped waiting meanwhile; its operation is durable all the same.
        let _ = self.caller.send(self.task.into_result());
    }
}

/// Submissions that are next to each other in the queue: one operation for all that are awaited.
struct SubmissionCalls {
    pending: Vec<Pending<Submission>>,
    /// The operation, when it runs.
    task: Option<Task<Vec<Result<DeploymentObject, StoreError>>>>,
    /// Callers of the operation.
    callers: Vec<Caller<Submission>>,
}

impl RunTask for SubmissionCalls {
    fn run(&mut self, session: &mut SqliteSession<'_>) -> bool {
        let awaited = std::mem::take(&mut self.pending).into_iter().filter(|pending| pending.is_awaited(WAIT_MAX));
        let (submissions, callers) = awaited.map(|pending| (pending.operation, pending.caller)).unzip();
        self.callers = callers;
        self.task.insert(Task::new(Box::new(|session| Submission::run_all(session, submissions)))).run(session)
    }

    fn revoke(&mut self, error: StoreError) {
        if let Some(task) = &mut self.task {
            task.revoke(error);
        }
    }
}

impl QueuedTask for SubmissionCalls {
    fn send_result(self: Box<Self>) {
        // Callers of a batch that did not run learn it from their closed channels.
        if let Some(task) = self.task {
            send_results::<Submission>(self.callers, task.into_result());
        }
    }
}

impl Job {
    pub(super) fn from_operation<T: Send + 'static>(
        operation: Operation<T>,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (caller, result) = oneshot::channel();
        let call = OperationCall { task: Task::new(operation), caller, queued_at: Instant::now() };
        (Self::Operation(Box::new(call)), result)
    }
}

/// Converts jobs to tasks in their order; submissions that are next to each other become one task.
fn merge_submissions(jobs: Vec<Job>) -> Vec<Box<dyn QueuedTask>> {
    let (mut tasks, mut submissions) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Submission(pending) => submissions.push(*pending),
            Job::Operation(operation) => {
                tasks.extend(submission_task(std::mem::take(&mut submissions)));
                tasks.push(operation);
            }
        }
    }
    tasks.extend(submission_task(submissions));
    tasks
}

fn submission_task(pending: Vec<Pending<Submission>>) -> Option<Box<dyn QueuedTask>> {
    if pending.is_empty() { None } else { Some(Box::new(SubmissionCalls { pending, task: None, callers: Vec::new() })) }
}

/// Executes the calls of a store, on a thread that its owner provides.
pub struct SqliteWorker {
    pub(super) connection: Connection,
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) observer: ObserverSlot,
    pub(super) cipher: CipherSlot,
    /// Released after the connection is closed.
    pub(super) _lock: FileLock,
}

impl SqliteWorker {
    /// Runs until the store is dropped. Then it moves the write-ahead log into the database file and closes it.
    pub fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut jobs = vec![first];
            while jobs.len() < BATCH_MAX
                && let Ok(next) = self.jobs.try_recv()
            {
                jobs.push(next);
            }
            let mut batch = merge_submissions(jobs);
            let mut tasks: Vec<&mut dyn RunTask> = batch.iter_mut().map(|queued| &mut **queued as _).collect();
            let changes = run_batch(&mut self.connection, &self.cipher, &mut tasks);
            self.observer.notify(&changes);
            batch.into_iter().for_each(|queued| queued.send_result());
        }
        // A reader may prevent it; then the log stays next to the file, and the next start reads it.
        let checkpointed = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        if !matches!(checkpointed, Ok(0)) {
            tracing::warn!("the write-ahead log of the database stays in a file of its own: another program reads it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(waited: Duration) -> (OperationCall<()>, oneshot::Receiver<Result<(), StoreError>>) {
        let (caller, result) = oneshot::channel();
        let operation: Operation<()> = Box::new(|_| Box::pin(std::future::ready(Ok(()))));
        let task = Task::new(operation);
        (OperationCall { task, caller, queued_at: Instant::now() - waited }, result)
    }

    #[test]
    fn a_call_begins_only_while_its_caller_waits_long_enough() {
        let (awaited, _result) = call(Duration::ZERO);
        let (late, _late_result) = call(WAIT_MAX);
        let (dropped, _) = call(Duration::ZERO);
        assert_eq!([awaited, late, dropped].map(|call| call.is_awaited()), [true, false, false]);
    }
}
