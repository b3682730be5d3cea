//! Opens a PostgreSQL database as a store, and passes calls to its connections.

use std::fmt;
use std::sync::Arc;

use deadpool_postgres::Pool;
use sindri_model::wire::{AgentEvent, DeploymentObject};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PostgresError;
use super::notifications::NotificationListener;
use super::origin::Origin;
use super::pool::{CALL_MAX, create_pool, set_network_limits, warn_without_encryption};
use super::schema;
use super::submitter::Submitter;
use super::tls::read_url;
use super::transaction::{read, transact};
use crate::store::bundle_cipher::BundleCipher;
use crate::store::operations::Store;
use crate::store::records::{ChangeObserver, DatabaseUsage, RestoreEvidence, StoreError, StoreFuture};
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::{Access, Database, Operation, SqlStore};
use crate::store::sql::group::{Grouped, Pending};
use crate::store::sql::observer_slot::ObserverSlot;
use crate::store::sql::reports::events::EventReport;
use crate::store::sql::stacks::submissions::Submission;

/// Largest number of submissions, and of events, that wait.
const QUEUE_MAX: usize = 16_384;

/// A store in PostgreSQL.
pub type PostgresStore = SqlStore<Postgres>;

// Not generic, so that the operations are compiled once, with this crate.
impl From<PostgresStore> for Arc<dyn Store> {
    fn from(store: PostgresStore) -> Self {
        Arc::new(store)
    }
}

/// A database of a PostgreSQL server.
pub struct Postgres {
    pool: Pool,
    origin: Arc<Origin>,
    submissions: mpsc::Sender<Pending<Submission>>,
    events: mpsc::Sender<Pending<EventReport>>,
    listener: NotificationListener,
    observer: ObserverSlot,
    cipher: CipherSlot,
    /// The submitter, if it runs on this runtime; it ends with the store.
    tasks: JoinSet<()>,
}

impl PostgresStore {
    /// Connects to the database at `url` with at most `connections` connections, and migrates it to the newest schema.
    /// Submissions and events run in a task of this runtime.
    pub async fn open(url: &str, connections: usize) -> Result<Self, PostgresError> {
        let (mut store, submitter) = Self::open_with_submitter(url, connections).await?;
        store.0.tasks.spawn(submitter.run());
        Ok(store)
    }

    /// Connects like [`PostgresStore::open`], and returns the submitter for its owner to run. On a runtime with a
    /// thread of its own, the many responses that a submission or an event awaits do not queue behind HTTP requests.
    pub async fn open_with_submitter(url: &str, connections: usize) -> Result<(Self, Submitter), PostgresError> {
        let (mut config, tls) = read_url(url)?;
        set_network_limits(&mut config);
        warn_without_encryption(&config);
        let tls = MakeRustlsConnect::new(tls);
        let origin = Arc::new(Origin::default());
        let pool = create_pool(&config, &tls, connections, &origin)?;
        let mut first = pool.get().await.map_err(|error| PostgresError::from_connecting(&error))?;
        schema::migrate(&mut first).await?;
        drop(first);
        let (submissions, pending_submissions) = mpsc::channel(QUEUE_MAX);
        let (events, pending_events) = mpsc::channel(QUEUE_MAX);
        let (observer, cipher) = (ObserverSlot::default(), CipherSlot::default());
        // A connection belongs to the runtime on which it was made, so the submitter has a pool of its own.
        let submitter = Submitter {
            pool: create_pool(&config, &tls, Submitter::CONNECTIONS, &origin)?,
            origin: origin.clone(),
            submissions: pending_submissions,
            events: pending_events,
            observer: observer.clone(),
            cipher: cipher.clone(),
        };
        let listener = NotificationListener::new(config, tls);
        let tasks = JoinSet::new();
        Ok((Self(Postgres { pool, origin, submissions, events, listener, observer, cipher, tasks }), submitter))
    }

    /// Returns the system identifier and the timeline of the server, which differ after a restore or a failover. None
    /// if the user may not read them.
    pub fn origin(&self) -> Option<String> {
        self.0.origin.current()
    }
}

/// Queues an operation and awaits its result.
async fn run_in_group<G: Grouped>(queue: &mpsc::Sender<Pending<G>>, operation: G) -> Result<G::Output, StoreError> {
    let call = async {
        let (pending, result) = Pending::new(operation);
        queue.try_send(pending).map_err(|_| StoreError::Unavailable)?;
        result.await.unwrap_or(Err(StoreError::Unavailable))
    };
    timeout(CALL_MAX, call).await.unwrap_or(Err(StoreError::Unavailable))
}

impl Database for Postgres {
    fn transact<T: Send + 'static>(&self, access: Access, operation: Operation<T>) -> StoreFuture<'_, T> {
        Box::pin(async move {
            let call = async {
                match access {
                    Access::Read => read(&self.pool, &self.origin, &self.cipher, operation).await,
                    Access::Write | Access::Recover => {
                        transact(&self.pool, &self.origin, &self.observer, &self.cipher, access, operation).await
                    }
                }
            };
            timeout(CALL_MAX, call).await.unwrap_or_else(|_| {
                // The idle connections may be as dead as this one: each would cost another call its whole time.
                self.pool.retain(|_, _| false);
                Err(StoreError::Unavailable)
            })
        })
    }

    fn submit(&self, submission: Submission) -> StoreFuture<'_, DeploymentObject> {
        Box::pin(run_in_group(&self.submissions, submission))
    }

    fn record_event(&self, report: EventReport) -> StoreFuture<'_, AgentEvent> {
        Box::pin(run_in_group(&self.events, report))
    }

    fn usage(&self) -> DatabaseUsage {
        let status = self.pool.status();
        let in_use = status.size.saturating_sub(status.available);
        DatabaseUsage { calls: in_use + status.waiting, connections_in_use: Some(in_use), bytes: None }
    }

    fn set_observer(&self, observer: ChangeObserver) {
        self.observer.set(observer);
    }

    fn set_bundle_cipher(&self, cipher: BundleCipher) {
        self.cipher.set(cipher);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn await_remote_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            self.listener.await_notification().await;
            Ok(())
        })
    }

    fn await_restore(&self) -> StoreFuture<'_, RestoreEvidence> {
        Box::pin(async { Ok(self.origin.await_replacement().await) })
    }

    fn confirm_restore(&self, evidence: &RestoreEvidence) {
        self.origin.confirm(evidence);
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Postgres")
    }
}
