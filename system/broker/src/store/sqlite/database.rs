//! Opens an SQLite file as a store, and passes calls to its connection.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use sindri_model::wire::{AgentEvent, DeploymentObject};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::batch::{Task, run_batch};
use super::error::SqliteError;
use super::file_lock::FileLock;
use super::schema;
use super::worker::{Job, SqliteWorker};
use crate::store::bundle_cipher::BundleCipher;
use crate::store::operations::Store;
use crate::store::records::{ChangeObserver, DatabaseUsage, RestoreEvidence, StoreError, StoreFuture};
use crate::store::sql::cipher_slot::CipherSlot;
use crate::store::sql::database::{Access, Database, Operation, SqlStore};
use crate::store::sql::group::{Pending, run_one};
use crate::store::sql::observer_slot::ObserverSlot;
use crate::store::sql::reports::events::EventReport;
use crate::store::sql::stacks::submissions::Submission;

/// Number of cached statements; more than this crate has.
const STATEMENTS_CACHED: usize = 256;
/// Largest number of calls that wait for the thread.
const QUEUE_MAX: usize = 16_384;
/// Time after which a call fails with [`StoreError::Unavailable`].
const CALL_MAX: Duration = Duration::from_secs(10);
/// Longest wait for another program that writes to the file.
const WRITER_MAX: Duration = Duration::from_secs(2);
/// Interval at which replicas on one database look for changes of the others.
const REMOTE_CHANGE_INTERVAL: Duration = Duration::from_secs(1);

/// A store in one SQLite file.
pub type SqliteStore = SqlStore<Sqlite>;

// Not generic, so that the operations are compiled once, with this crate.
impl From<SqliteStore> for Arc<dyn Store> {
    fn from(store: SqliteStore) -> Self {
        Arc::new(store)
    }
}

/// Function whose future is awaited before each call. With it the simulation stalls a database.
pub type Gate = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// One SQLite file.
pub struct Sqlite {
    executor: Executor,
    is_shared: bool,
    observer: ObserverSlot,
    cipher: CipherSlot,
    /// Path of the file, if calls run on a worker.
    path: Option<String>,
}

/// Place where calls run.
#[derive(Clone)]
enum Executor {
    Inline(Arc<Mutex<Connection>>, Option<Gate>),
    Thread(mpsc::Sender<Job>),
}

impl SqliteStore {
    /// Opens or creates the file at `path` and migrates it to the newest schema. Calls run inline. `vfs` names a
    /// registered VFS of SQLite; None: the default one.
    pub fn open(path: &str, vfs: Option<&str>) -> Result<Self, SqliteError> {
        let connection = Arc::new(Mutex::new(connect(path, vfs, Sharing::Exclusive)?));
        let executor = Executor::Inline(connection, None);
        let (observer, cipher) = (ObserverSlot::default(), CipherSlot::default());
        Ok(Self(Sqlite { executor, is_shared: false, observer, cipher, path: None }))
    }

    /// Opens a file like [`SqliteStore::open`], so that other programs may read it: a backup, or the tools of SQLite.
    /// Calls run on the worker, which its owner runs on a thread.
    pub fn open_with_worker(path: &str) -> Result<(Self, SqliteWorker), SqliteError> {
        let lock = FileLock::acquire(path)?;
        let connection = connect(path, None, Sharing::Readable)?;
        let (sender, jobs) = mpsc::channel(QUEUE_MAX);
        let (observer, cipher) = (ObserverSlot::default(), CipherSlot::default());
        let (executor, path) = (Executor::Thread(sender), Some(path.to_owned()));
        let store =
            Self(Sqlite { executor, is_shared: false, observer: observer.clone(), cipher: cipher.clone(), path });
        Ok((store, SqliteWorker { connection, jobs, observer, cipher, _lock: lock }))
    }

    /// Returns a store of another broker in the same process, on the same database.
    pub fn replica(&self) -> Self {
        let (executor, path, cipher) = (self.0.executor.clone(), self.0.path.clone(), self.0.cipher.clone());
        Self(Sqlite { executor, is_shared: true, observer: ObserverSlot::default(), cipher, path })
    }

    /// Makes each call await `gate` first. Has an effect only on a store whose calls run inline.
    pub fn gated(mut self, gate: Gate) -> Self {
        if let Executor::Inline(_, before) = &mut self.0.executor {
            *before = Some(gate);
        }
        self
    }
}

/// Access of other processes to an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// None. The write-ahead log then needs no shared memory, which a VFS need not have.
    Exclusive,
    /// Other processes may read. Those that write, apart from a broker, are awaited for [`WRITER_MAX`].
    Readable,
}

fn connect(path: &str, vfs: Option<&str>, sharing: Sharing) -> Result<Connection, SqliteError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    match sharing {
        Sharing::Exclusive => {
            // A process that has locked the file keeps it locked: waiting would not help.
            connection.busy_timeout(Duration::ZERO)?;
            // Before the journal mode, which otherwise creates shared memory.
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        Sharing::Readable => connection.busy_timeout(WRITER_MAX)?,
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// Returns the size of a database with its write-ahead log.
fn read_size(path: &str) -> u64 {
    ["", "-wal"]
        .iter()
        .filter_map(|suffix| std::fs::metadata(format!("{path}{suffix}")).ok())
        .map(|file| file.len())
        .sum()
}

impl Sqlite {
    fn run_inline<T: Send + 'static>(
        &self,
        connection: &Mutex<Connection>,
        operation: Operation<T>,
    ) -> Result<T, StoreError> {
        let mut task = Task::new(operation);
        // A panic inside an operation has rolled its transaction back, so the connection can still be used.
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = run_batch(&mut connection, &self.cipher, &mut [&mut task]);
        drop(connection);
        self.observer.notify(&changes);
        task.into_result()
    }
}

/// Queues a job and awaits its result.
async fn run_on_thread<T>(
    jobs: &mpsc::Sender<Job>,
    job: Job,
    result: oneshot::Receiver<Result<T, StoreError>>,
) -> Result<T, StoreError> {
    jobs.try_send(job).map_err(|_| StoreError::Unavailable)?;
    let result = timeout(CALL_MAX, result).await.map_err(|_| StoreError::Unavailable)?;
    result.unwrap_or(Err(StoreError::Unavailable))
}

impl Database for Sqlite {
    fn transact<T: Send + 'static>(&self, _: Access, operation: Operation<T>) -> StoreFuture<'_, T> {
        match &self.executor {
            Executor::Inline(connection, None) => Box::pin(async { self.run_inline(connection, operation) }),
            Executor::Inline(connection, Some(gate)) => Box::pin(async {
                timeout(CALL_MAX, gate()).await.map_err(|_| StoreError::Unavailable)?;
                self.run_inline(connection, operation)
            }),
            Executor::Thread(jobs) => Box::pin(async {
                let (job, result) = Job::from_operation(operation);
                run_on_thread(jobs, job, result).await
            }),
        }
    }

    fn submit(&self, submission: Submission) -> StoreFuture<'_, DeploymentObject> {
        match &self.executor {
            Executor::Inline(..) => {
                self.transact(Access::Write, Box::new(|session| Box::pin(run_one(session, submission))))
            }
            Executor::Thread(jobs) => Box::pin(async {
                let (pending, result) = Pending::new(submission);
                run_on_thread(jobs, Job::Submission(Box::new(pending)), result).await
            }),
        }
    }

    fn record_event(&self, report: EventReport) -> StoreFuture<'_, AgentEvent> {
        self.transact(Access::Write, Box::new(|session| Box::pin(run_one(session, report))))
    }

    fn usage(&self) -> DatabaseUsage {
        match &self.executor {
            Executor::Inline(..) => DatabaseUsage::default(),
            Executor::Thread(jobs) => DatabaseUsage {
                calls: jobs.max_capacity() - jobs.capacity(),
                connections_in_use: None,
                bytes: self.path.as_deref().map(read_size),
            },
        }
    }

    fn set_observer(&self, observer: ChangeObserver) {
        self.observer.set(observer);
    }

    fn set_bundle_cipher(&self, cipher: BundleCipher) {
        self.cipher.set(cipher);
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn await_remote_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async {
            sleep(REMOTE_CHANGE_INTERVAL).await;
            Ok(())
        })
    }

    /// Never completes: the file is locked while it is open.
    fn await_restore(&self) -> StoreFuture<'_, RestoreEvidence> {
        Box::pin(std::future::pending())
    }

    fn confirm_restore(&self, _: &RestoreEvidence) {}
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sqlite")
    }
}
