//! Runs a batch of operations in one transaction, each in a savepoint of its own.
//!
//! An operation that fails is rolled back without affecting the others of its batch.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use rusqlite::Connection;

use super::session::SqliteSession;
use crate::store::records::{StoreChange, StoreError};
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::Operation;

/// An operation and, after it ran, its result.
pub(super) struct Task<T> {
    operation: Option<Operation<T>>,
    result: Result<T, StoreError>,
}

impl<T> Task<T> {
    pub(super) fn new(operation: Operation<T>) -> Self {
        Self { operation: Some(operation), result: Err(StoreError::Unavailable) }
    }

    pub(super) fn into_result(self) -> Result<T, StoreError> {
        self.result
    }
}

/// A task whose result type is erased.
pub(super) trait RunTask {
    /// Runs the operation; returns true if it succeeded.
    fn run(&mut self, session: &mut SqliteSession<'_>) -> bool;
    /// Replaces a success by an error, because the transaction was not committed.
    fn revoke(&mut self, error: StoreError);
}

impl<T> RunTask for Task<T> {
    fn run(&mut self, session: &mut SqliteSession<'_>) -> bool {
        let Some(operation) = self.operation.take() else { return false };
        // An operation that panics must not end the thread, and with it every other operation.
        let done = catch_unwind(AssertUnwindSafe(|| operation(session).now_or_never()));
        self.result = match done {
            Ok(result) => result.expect("SQLite responds at once"),
            Err(_) => Err(StoreError::Failed("an operation of the store panicked".to_owned())),
        };
        self.result.is_ok()
    }

    fn revoke(&mut self, error: StoreError) {
        if self.result.is_ok() {
            self.result = Err(error);
        }
    }
}

/// Runs tasks in one transaction, and returns the changes of those that succeeded.
pub(super) fn run_batch(
    connection: &mut Connection,
    cipher: &CipherSlot,
    batch: &mut [&mut dyn RunTask],
) -> Vec<StoreChange> {
    match run_transaction(connection, cipher, batch) {
        Ok(changes) => changes,
        Err(error) => {
            // The transaction may have ended already; if it has not, it must not stay open.
            let _ = connection.execute_batch("ROLLBACK");
            batch.iter_mut().for_each(|task| task.revoke(error.clone()));
            Vec::new()
        }
    }
}

fn run_transaction(
    connection: &mut Connection,
    cipher: &CipherSlot,
    batch: &mut [&mut dyn RunTask],
) -> Result<Vec<StoreChange>, StoreError> {
    let mut session = SqliteSession::new(connection, cipher);
    session.run("BEGIN")?;
    let is_alone = batch.len() == 1;
    for task in batch.iter_mut() {
        let before = session.changes.len();
        if !is_alone {
            session.run("SAVEPOINT operation")?;
        }
        let succeeded = task.run(&mut session);
        if !succeeded {
            session.changes.truncate(before);
        }
        match (is_alone, succeeded) {
            (true, true) => {}
            (true, false) => {
                session.run("ROLLBACK")?;
                return Ok(Vec::new());
            }
            (false, true) => session.run("RELEASE operation")?,
            (false, false) => {
                session.run("ROLLBACK TO operation")?;
                session.run("RELEASE operation")?;
            }
        }
    }
    session.run("COMMIT")?;
    Ok(session.changes)
}
