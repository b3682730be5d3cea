//! The configured database, and a broker over it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use sindri_broker::{Broker, PostgresStore, RestoreEvidence, SqliteStore, Submitter};
use sindri_model::Entropy;
use sindri_process::Config;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::settings;
use super::start_error::StartError;
use super::system::{build_runtime, system_clock};

/// Longest wait for the database to be closed at the end of the process.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// A broker with its database.
pub struct StartedBroker {
    /// The broker.
    pub broker: Broker,
    /// Its database, which is closed after the broker is dropped.
    pub database: OpenDatabase,
}

/// An open database.
pub struct OpenDatabase {
    /// Completes when the file of SQLite is closed; None: the database is on a server.
    closed: Option<oneshot::Receiver<()>>,
}

impl OpenDatabase {
    /// Waits until the database is closed. Call it after every clone of its broker was dropped.
    pub async fn await_closed(self) {
        let Some(closed) = self.closed else { return };
        if timeout(CLOSE_MAX, closed).await.is_err() {
            tracing::warn!("the database is not closed yet; its write-ahead log stays in a file of its own");
        }
    }
}

/// Returns the path of the database file, if the database is SQLite.
pub fn sqlite_path(config: &Config) -> Option<&str> {
    let url = config.text(&settings::DATABASE_URL);
    url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"))
}

/// Starts a broker over the configured database.
pub async fn start_broker(config: &Config, entropy: &Entropy) -> Result<StartedBroker, StartError> {
    let url = config.text(&settings::DATABASE_URL);
    let redacted_url = settings::DATABASE_URL.redact(url);
    let store_error = |source| StartError::Store { database: redacted_url.clone(), source };
    if let Some(path) = sqlite_path(config) {
        let (store, closed) = open_sqlite(path)?;
        let broker = Broker::start(store, system_clock(), entropy.clone()).await.map_err(store_error)?;
        return Ok(StartedBroker { broker, database: OpenDatabase { closed: Some(closed) } });
    }
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(StartError::NoStore(redacted_url));
    }
    let opened = PostgresStore::open_with_submitter(url, config.count(&settings::DATABASE_CONNECTIONS)).await;
    let (store, submitter) =
        opened.map_err(|source| StartError::Postgres { database: redacted_url.clone(), source })?;
    run_submitter_on_thread(submitter)?;
    let evidence = RestoreEvidence { origin: store.origin(), ..RestoreEvidence::default() };
    let broker = Broker::start(store, system_clock(), entropy.clone()).await.map_err(store_error)?;
    broker.detect_replacement(evidence).await.map_err(store_error)?;
    Ok(StartedBroker { broker, database: OpenDatabase { closed: None } })
}

/// Opens SQLite. Its calls block, so they run on a separate thread, which ends with the store.
#[expect(clippy::disallowed_methods, reason = "the process owns threads")]
fn open_sqlite(path: &str) -> Result<(SqliteStore, oneshot::Receiver<()>), StartError> {
    create_private_file(path)?;
    let opened = SqliteStore::open_with_worker(path);
    let (store, worker) = opened.map_err(|source| StartError::Database { path: path.to_owned(), source })?;
    let (closing, closed) = oneshot::channel();
    std::thread::spawn(move || {
        worker.run();
        // The process may have stopped waiting.
        let _ = closing.send(());
    });
    Ok((store, closed))
}

/// Runs submissions on a separate thread, which ends with the store. They make many round trips to the database and must
/// not wait behind requests.
#[expect(clippy::disallowed_methods, reason = "the process owns threads")]
fn run_submitter_on_thread(submitter: Submitter) -> Result<(), StartError> {
    let runtime = build_runtime(1)?;
    std::thread::spawn(move || runtime.block_on(submitter.run()));
    Ok(())
}

/// Creates the database file readable by its owner only, because bundles may contain secrets.
fn create_private_file(path: &str) -> Result<(), StartError> {
    let created = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    created.map(drop).map_err(|source| StartError::DatabaseFile { path: path.to_owned(), source })
}
