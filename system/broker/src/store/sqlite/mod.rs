//! The store in one SQLite file: one connection, one verb after another.
//!
//! The file belongs to one broker at a time (exclusive locking): no shared memory is needed beside the log,
//! and a second broker on the same file is refused at its start.
//!
//! Calls are made inline, or on a thread that the process hands in: then they wait in a bounded queue, and what waits
//! together is made durable together.

mod schema;
mod session;
mod worker;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use sindri_model::wire::DeploymentObject;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

pub use self::worker::Worker;
use self::worker::{Job, Task, carry_out};
use super::records::{Change, StoreError, Stored, Watcher};
use super::sql::database::{Database, Deed, Sql, Weight};
use super::sql::stacks::submissions::{Submission, Waiting, append};

/// More statements than there are in this crate.
const STATEMENTS_CACHED: usize = 256;
/// Calls that wait for the thread.
const QUEUE_MAX: usize = 16_384;
/// After this a call is given up; the caller is told to come again.
const CALL_MAX: Duration = Duration::from_secs(10);
/// How often replicas on one database look for what the others did.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A store in one SQLite file.
pub type SqliteStore = Sql<Sqlite>;

/// What a call waits for before it is made: how the simulated world stalls a database.
pub type Gate = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// One SQLite file.
pub struct Sqlite {
    lane: Lane,
    is_shared: bool,
    watcher: Arc<OnceLock<Watcher>>,
}

/// Where calls are made.
#[derive(Clone)]
enum Lane {
    Inline(Arc<Mutex<Connection>>, Option<Gate>),
    Thread(mpsc::Sender<Job>),
}

/// The file cannot be used as a store.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A newer Sindri has migrated it.
    #[error(
        "the database has schema version {found}, and this broker knows versions up to {known}: use a newer broker"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest version of this broker.
        known: usize,
    },
    /// It holds the tables of something else.
    #[error("the database is not one of Sindri: it holds other tables")]
    Foreign,
    /// Another broker has it.
    #[error("the database is in use by another process")]
    InUse,
    /// SQLite failed.
    #[error("the database cannot be opened: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            _ => Self::Sqlite(error),
        }
    }
}

impl SqliteStore {
    /// Opens or creates the file at `path` and brings it to the newest schema. `vfs` names how SQLite
    /// reaches files, if not in the usual way. Calls are made inline.
    pub fn open(path: &str, vfs: Option<&str>) -> Result<Self, OpenError> {
        let connection = Arc::new(Mutex::new(connect(path, vfs)?));
        Ok(Self(Sqlite { lane: Lane::Inline(connection, None), is_shared: false, watcher: Arc::default() }))
    }

    /// The same, with calls made by a worker that its owner runs on a thread.
    pub fn open_with_worker(path: &str) -> Result<(Self, Worker), OpenError> {
        let connection = connect(path, None)?;
        let (sender, jobs) = mpsc::channel(QUEUE_MAX);
        let watcher: Arc<OnceLock<Watcher>> = Arc::default();
        let store = Self(Sqlite { lane: Lane::Thread(sender), is_shared: false, watcher: watcher.clone() });
        Ok((store, Worker { connection, jobs, watcher }))
    }

    /// Another broker's way to the same database, in the same process.
    pub fn replica(&self) -> Self {
        Self(Sqlite { lane: self.0.lane.clone(), is_shared: true, watcher: Arc::default() })
    }

    /// The same store, where each call waits for `gate` first. Only for calls that are made inline.
    pub fn gated(mut self, gate: Gate) -> Self {
        if let Lane::Inline(_, before) = &mut self.0.lane {
            *before = Some(gate);
        }
        self
    }
}

fn connect(path: &str, vfs: Option<&str>) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    // Who has the file locked keeps it locked: waiting would not help.
    connection.busy_timeout(Duration::ZERO)?;
    // Before the journal's mode: with it, the write-ahead log needs no shared memory.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    schema::migrate(&mut connection)?;
    Ok(connection)
}

impl Sqlite {
    fn inline<T: Send + 'static>(&self, connection: &Mutex<Connection>, deed: Deed<T>) -> Result<T, StoreError> {
        let mut task = Task::new(deed);
        // A panic inside a verb has rolled its transaction back: the connection is as good as before.
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = carry_out(&mut connection, &mut [&mut task]);
        drop(connection);
        tell(&self.watcher, &changes);
        task.into_result()
    }
}

/// Waits for the thread.
async fn carried_out<T>(
    jobs: &mpsc::Sender<Job>,
    job: Job,
    answer: oneshot::Receiver<Result<T, StoreError>>,
) -> Result<T, StoreError> {
    jobs.try_send(job).map_err(|_| StoreError::Unavailable)?;
    let answer = timeout(CALL_MAX, answer).await.map_err(|_| StoreError::Unavailable)?;
    answer.unwrap_or(Err(StoreError::Unavailable))
}

impl Database for Sqlite {
    fn transact<T: Send + 'static>(&self, _: Weight, deed: Deed<T>) -> Stored<'_, T> {
        match &self.lane {
            Lane::Inline(connection, None) => Box::pin(async { self.inline(connection, deed) }),
            Lane::Inline(connection, Some(gate)) => Box::pin(async {
                timeout(CALL_MAX, gate()).await.map_err(|_| StoreError::Unavailable)?;
                self.inline(connection, deed)
            }),
            Lane::Thread(jobs) => Box::pin(async {
                let (job, answer) = Job::verb(deed);
                carried_out(jobs, job, answer).await
            }),
        }
    }

    fn submit(&self, submission: Submission) -> Stored<'_, DeploymentObject> {
        match &self.lane {
            Lane::Inline(..) => self.transact(Weight::Write, Box::new(|session| Box::pin(append(session, submission)))),
            Lane::Thread(jobs) => Box::pin(async {
                let (waiting, answer) = Waiting::new(submission);
                carried_out(jobs, Job::Submission(waiting), answer).await
            }),
        }
    }

    fn attach(&self, watcher: Watcher) {
        // The first broker keeps it: a store has one.
        let _ = self.watcher.set(watcher);
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn heard(&self) -> Stored<'_, ()> {
        Box::pin(async {
            sleep(LOOK_EVERY).await;
            Ok(())
        })
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sqlite")
    }
}

fn tell(watcher: &OnceLock<Watcher>, changes: &[Change]) {
    if let Some(watcher) = watcher.get()
        && !changes.is_empty()
    {
        watcher(changes);
    }
}
