//! Runs queued calls in batches, in their order. No call returns before its batch is durable.

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::batch::{RunTask, Task, run_batch};
use super::file_lock::FileLock;
use crate::store::records::StoreError;
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::Operation;
use crate::store::sql::observer_slot::ObserverSlot;
use crate::store::sql::stacks::submissions::{PendingSubmission, SubmissionResult, append_all, send_results};

/// Largest number of calls that share a transaction.
const BATCH_MAX: usize = 64;

/// A call that waits for the thread.
pub(super) enum Job {
    Operation(Box<dyn QueuedTask>),
    Submission(Box<PendingSubmission>),
}

/// A task with the callers that await its result.
pub(super) trait QueuedTask: Send {
    fn task(&mut self) -> &mut dyn RunTask;
    fn send_result(self: Box<Self>);
}

struct OperationCall<T> {
    task: Task<T>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send> QueuedTask for OperationCall<T> {
    fn task(&mut self) -> &mut dyn RunTask {
        &mut self.task
    }

    fn send_result(self: Box<Self>) {
        // The caller may have stopped waiting; its operation is durable all the same.
        let _ = self.caller.send(self.task.into_result());
    }
}

/// Submissions that are next to each other in the queue: one operation for all of them.
struct SubmissionCalls {
    task: Task<Vec<SubmissionResult>>,
    callers: Vec<oneshot::Sender<SubmissionResult>>,
}

impl QueuedTask for SubmissionCalls {
    fn task(&mut self) -> &mut dyn RunTask {
        &mut self.task
    }

    fn send_result(self: Box<Self>) {
        send_results(self.callers, self.task.into_result());
    }
}

impl Job {
    pub(super) fn from_operation<T: Send + 'static>(
        operation: Operation<T>,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (caller, result) = oneshot::channel();
        (Self::Operation(Box::new(OperationCall { task: Task::new(operation), caller })), result)
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

fn submission_task(pending: Vec<PendingSubmission>) -> Option<Box<dyn QueuedTask>> {
    if pending.is_empty() {
        return None;
    }
    let (submissions, callers) = pending.into_iter().map(|pending| (pending.submission, pending.caller)).unzip();
    let task = Task::new(Box::new(|session| Box::pin(append_all(session, submissions))));
    Some(Box::new(SubmissionCalls { task, callers }))
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
            let mut tasks: Vec<&mut dyn RunTask> = batch.iter_mut().map(|queued| queued.task()).collect();
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
