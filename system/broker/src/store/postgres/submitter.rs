//! Runs submissions and events: those of one kind that wait together share a transaction and its statements.
//!
//! One transaction of each kind after another. Two of submissions at once would wait for the one counter anyway, and are measured to cost
//! more; events of one agent would wait for its assignment.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::future::join;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::origin::Origin;
use super::pool::CALL_MAX;
use super::transaction::transact;
use crate::store::records::StoreError;
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::{Access, Operation};
use crate::store::sql::group::{Grouped, Pending, send_results};
use crate::store::sql::observer_slot::ObserverSlot;
use crate::store::sql::reports::events::EventReport;
use crate::store::sql::stacks::submissions::Submission;

/// Largest number of operations that share a transaction.
const BATCH_MAX: usize = 64;
/// Longest wait for operations that follow those of the last transaction. A commit takes about as long.
const FOLLOW_MAX: Duration = Duration::from_millis(1);

/// Executes the submissions of a store, and records its events.
pub struct Submitter {
    pub(super) pool: Pool,
    pub(super) origin: Arc<Origin>,
    pub(super) submissions: mpsc::Receiver<Pending<Submission>>,
    pub(super) events: mpsc::Receiver<Pending<EventReport>>,
    pub(super) observer: ObserverSlot,
    pub(super) cipher: CipherSlot,
}

impl Submitter {
    /// One for each kind.
    pub(super) const CONNECTIONS: usize = 2;

    /// Runs until the store is dropped.
    pub async fn run(mut self) {
        let (submissions, events) = (&mut self.submissions, &mut self.events);
        let shared = (&self.pool, &*self.origin, &self.observer, &self.cipher);
        join(run_kind(submissions, shared), run_kind(events, shared)).await;
    }
}

/// The parts of a submitter that both kinds need.
type Shared<'a> = (&'a Pool, &'a Origin, &'a ObserverSlot, &'a CipherSlot);

async fn run_kind<G: Grouped>(pending: &mut mpsc::Receiver<Pending<G>>, (pool, origin, observer, cipher): Shared<'_>) {
    let (mut batch, mut expected) = (Vec::new(), 0);
    while receive(pending, &mut batch, expected).await {
        let awaited = batch.drain(..).filter(|pending: &Pending<G>| pending.is_awaited(CALL_MAX));
        let (operations, callers): (Vec<_>, Vec<_>) =
            awaited.map(|pending| (pending.operation, pending.caller)).unzip();
        expected = callers.len();
        if callers.is_empty() {
            continue;
        }
        let operation: Operation<_> = Box::new(|session| G::run_all(session, operations));
        let done = transact(pool, origin, observer, cipher, Access::Write, operation);
        // A connection that does not respond is closed, and the next operations use another one.
        send_results::<G>(callers, timeout(CALL_MAX, done).await.unwrap_or(Err(StoreError::Unavailable)));
    }
}

/// Receives the operations that wait, and those that follow at once, up to the expected number: callers that have just got their
/// results. Otherwise the first one that returns would have a transaction of its own, and all others would wait for its commit. Returns
/// false if there are no more callers.
async fn receive<T>(pending: &mut mpsc::Receiver<T>, batch: &mut Vec<T>, expected: usize) -> bool {
    if pending.recv_many(batch, BATCH_MAX).await == 0 {
        return false;
    }
    let rest = async { while batch.len() < expected && pending.recv_many(batch, BATCH_MAX - batch.len()).await > 0 {} };
    // Callers that do not return in time are not expected again.
    let _late = timeout(FOLLOW_MAX, rest).await;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_batch_waits_a_little_for_the_callers_of_the_last_one() {
        let (sender, mut pending) = mpsc::channel(8);
        let mut batch = Vec::new();
        sender.send(1).await.unwrap();
        assert!(receive(&mut pending, &mut batch, 0).await);
        assert_eq!(batch, [1], "no other caller is expected");
        sender.send(2).await.unwrap();
        let follow = async {
            tokio::task::yield_now().await;
            sender.send(3).await.unwrap();
        };
        assert!(futures_util::join!(receive(&mut pending, &mut batch, 3), follow).0);
        assert_eq!(batch, [1, 2, 3]);
        batch.clear();
        sender.send(4).await.unwrap();
        assert!(receive(&mut pending, &mut batch, 8).await, "it does not wait for ever");
        drop(sender);
        batch.clear();
        assert!(!receive(&mut pending, &mut batch, 8).await);
    }
}
