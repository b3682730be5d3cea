//! A database as the verbs need it: something that carries out transactions.

use sindri_model::wire::DeploymentObject;

use super::shared::session::Session;
use super::stacks::submissions::Submission;
use crate::store::records::{Stored, Watcher};

/// A verb with its arguments, to be carried out in a transaction.
pub(crate) type Deed<T> = Box<dyn for<'s> FnOnce(&'s mut dyn Session) -> Stored<'s, T> + Send>;

/// How a verb may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It changes nothing.
    Read,
    /// It may change anything.
    Write,
}

/// Carries out transactions.
pub(crate) trait Database: Send + Sync + 'static {
    /// Carries a verb out in one transaction: all of it, or nothing. When it returns, it is durable, and the watcher
    /// was told what it changed, even if the caller has gone away meanwhile.
    fn transact<T: Send + 'static>(&self, weight: Weight, deed: Deed<T>) -> Stored<'_, T>;
    /// Carries a submission out, together with others that wait just then.
    fn submit(&self, submission: Submission) -> Stored<'_, DeploymentObject>;
    /// From now on `watcher` is told what is committed here.
    fn attach(&self, watcher: Watcher);
    /// Whether others write to the same database.
    fn is_shared(&self) -> bool;
    /// Ends when somebody else may have committed something, or after a while.
    fn heard(&self) -> Stored<'_, ()>;
}

/// A store over an SQL database.
#[derive(Debug)]
pub struct Sql<D>(pub(crate) D);
