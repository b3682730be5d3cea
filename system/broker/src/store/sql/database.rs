//! The interface between the operations and a database.

use sindri_model::wire::{AgentEvent, DeploymentObject};

use super::reports::events::EventReport;
use super::shared::session::Session;
use super::stacks::submissions::Submission;
use crate::store::bundle_cipher::BundleCipher;
use crate::store::records::{ChangeObserver, DatabaseUsage, RestoreEvidence, StoreFuture};

/// An operation with its arguments, ready to run in a transaction.
pub(crate) type Operation<T> = Box<dyn for<'s> FnOnce(&'s mut dyn Session) -> StoreFuture<'s, T> + Send>;

/// Access that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The operation only reads.
    Read,
    /// The operation may write.
    Write,
    /// The operation may write, and runs also after the database was replaced and before a new epoch has begun.
    Recover,
}

/// A database that runs transactions.
pub(crate) trait Database: Send + Sync + 'static {
    /// Runs an operation in one transaction. When the future completes, the transaction is durable and the observer
    /// has received its changes, even if the caller has dropped the future meanwhile.
    fn transact<T: Send + 'static>(&self, access: Access, operation: Operation<T>) -> StoreFuture<'_, T>;
    /// Runs a submission, in one transaction with others that wait at the same time.
    fn submit(&self, submission: Submission) -> StoreFuture<'_, DeploymentObject>;
    /// Records an event, in one transaction with others that wait at the same time.
    fn record_event(&self, report: EventReport) -> StoreFuture<'_, AgentEvent>;
    /// Returns the use of the database's resources.
    fn usage(&self) -> DatabaseUsage;
    /// Sets the observer of the changes that are committed here.
    fn set_observer(&self, observer: ChangeObserver);
    /// Sets the cipher of bundles.
    fn set_bundle_cipher(&self, cipher: BundleCipher);
    /// Returns true if other brokers write to the same database.
    fn is_shared(&self) -> bool;
    /// Completes when another broker may have committed a change, and after a bounded time in any case.
    fn await_remote_change(&self) -> StoreFuture<'_, ()>;
    /// Completes when the database was replaced while the broker runs. Until [`Self::confirm_restore`], only operations
    /// with [`Access::Recover`] run.
    fn await_restore(&self) -> StoreFuture<'_, RestoreEvidence>;
    /// Accepts all operations again, because the replacement was handled.
    fn confirm_restore(&self, evidence: &RestoreEvidence);
}

/// A store in an SQL database.
#[derive(Debug)]
pub struct SqlStore<D>(pub(crate) D);
