//! The broker process: settings, clock, entropy, files and signals. Everything else is in the library.

mod process;

use std::convert::Infallible;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use jiff::Timestamp;
use sindri_broker::{
    Bounds, Broker, DecryptionError, EncryptionKey, EncryptionKeyError, Limits, PostgresError, PostgresStore,
    RestoreEvidence, Retention, RunOnThread, Sender, ServeOptions, SqliteError, SqliteStore, StoreError, Submitter,
    TargetPolicy, TrustedProxies, WebhookSettings, serve_with, system_connector, with_request_id,
};
use sindri_model::{Clock, Entropy};
use sindri_process::{Config, ConfigError, Signals, Startup, logs};
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use process::key::{self, KeyError};
use process::tls_files::{TlsFiles, TlsFilesError};
use process::{descriptors, pages, settings};

/// Limit on connections that wait to be accepted.
const BACKLOG: u32 = 4_096;

/// A request makes many small, short-lived allocations, which mimalloc handles faster than the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Reason for which the broker cannot start.
#[derive(Debug, Error)]
enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("there is no store for the database {0}: use sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME")]
    NoStore(String),
    #[error("{path}: {source}")]
    Database { path: String, source: SqliteError },
    #[error("{database}: {source}")]
    Postgres { database: String, source: PostgresError },
    #[error("{database}: {source}")]
    Store { database: String, source: StoreError },
    #[error("the database {path} cannot be opened: {source}")]
    DatabaseFile { path: String, source: io::Error },
    #[error("the encryption key of webhooks: {0}")]
    EncryptionKey(EncryptionKeyError),
    #[error("the encryption key of webhooks in {path}: {source}")]
    EncryptionKeyFile { path: String, source: io::Error },
    #[error("{0}: set webhooks.encryption_key_file or webhooks.encryption_key to the key with which it was stored")]
    UndecryptableWebhook(DecryptionError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error(transparent)]
    TlsFiles(#[from] TlsFilesError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sindri-broker: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), StartError> {
    pages::disable_huge_pages();
    let (config, command) = match Startup::read(&settings::PROGRAM, std::env::args_os(), std::env::vars_os())? {
        Startup::Print(text) => {
            print!("{text}");
            return Ok(());
        }
        Startup::Run { config, command } => (config, command),
    };
    let request_id = || with_request_id(|id| id.map(str::to_owned));
    logs::init(config.text(&settings::LOG_FORM), config.text(&settings::LOG_LEVEL), request_id);
    descriptors::raise_limit();
    let runtime = build_runtime(config.count(&settings::WORKERS))?;
    if command.is_some_and(|(name, _)| name == settings::RESTORE_EPOCH) {
        return runtime.block_on(begin_epoch(&config));
    }
    runtime.block_on(start(&config))
}

fn build_runtime(workers: usize) -> io::Result<Runtime> {
    // One worker needs no multi-threaded scheduler.
    if workers == 1 {
        return Builder::new_current_thread().enable_all().build();
    }
    Builder::new_multi_thread().worker_threads(workers).enable_all().build()
}

/// Begins a new epoch after the operator has restored the database: later submissions have higher sequences than all earlier ones.
async fn begin_epoch(config: &Config) -> Result<(), StartError> {
    let broker = start_broker(config, &system_entropy()).await?;
    let store_error = |source| StartError::Store {
        database: settings::DATABASE_URL.redact(config.text(&settings::DATABASE_URL)),
        source,
    };
    let epoch = broker.record_restore("an operator recorded a restore".to_owned()).await.map_err(store_error)?;
    println!("epoch {epoch} begins");
    Ok(())
}

async fn start(config: &Config) -> Result<(), StartError> {
    // First, so that a signal during the start is handled too.
    let signals = Signals::listen()?;
    // Without a handler SIGHUP would end a broker that has no certificate to read again.
    let _hangup = signal(SignalKind::hangup())?;
    let files = open_tls_files(config)?;
    let entropy = system_entropy();
    let broker = start_broker(config, &entropy)
        .await?
        .with_bounds(read_bounds(config))
        .with_threads(run_on_thread())
        .with_retention(read_retention(config))
        .with_trusted_proxies(read_trusted_proxies(config))
        .with_offline_after(read_offline_after(config));
    let broker = with_webhooks(config, broker).await?;
    let key_file = Path::new(config.text(&settings::ADMIN_KEY_FILE));
    key::create_admin_key(&broker, key_file, &entropy, config.is_on(&settings::PRINT_ADMIN_KEY)).await?;
    let listen_error = |source| StartError::Listen { address: config.text(&settings::LISTEN).to_owned(), source };
    let listener = listen(config.text(&settings::LISTEN)).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    let scheme = if files.is_some() { "https" } else { "http" };
    if files.is_none() && !address.ip().is_loopback() {
        tracing::warn!(%address, "keys and bundles are sent without encryption: set tls.certificate_file and tls.key_file");
    }
    println!("READY {scheme}://{address}");
    io::stdout().flush()?;
    let listener = listener.tap_io(|stream| {
        // Only improves latency; if the client has disconnected, the first read fails.
        let _ = stream.set_nodelay(true);
    });
    let options = ServeOptions { tls: files.as_ref().map(TlsFiles::tls), limits: read_limits(config) };
    tokio::select! {
        biased; // Only serving ends the process.
        served = serve_with(listener, broker, options, signals.end()) => Ok(served?),
        never = follow_tls_files(files) => match never {},
    }
}

fn open_tls_files(config: &Config) -> Result<Option<TlsFiles>, TlsFilesError> {
    let paths = config.path(&settings::TLS_CERTIFICATE_FILE).zip(config.path(&settings::TLS_KEY_FILE));
    paths.map(|(certificate, key)| TlsFiles::open(certificate, key)).transpose()
}

async fn follow_tls_files(files: Option<TlsFiles>) -> Infallible {
    match files {
        Some(files) => files.follow().await,
        None => std::future::pending().await,
    }
}

/// Listens with a backlog for a whole fleet that reconnects at once.
async fn listen(address: &str) -> io::Result<TcpListener> {
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

fn read_bounds(config: &Config) -> Bounds {
    Bounds {
        body_bytes_max: config.count(&settings::LIMITS_BODY_BYTES),
        wait_max: Duration::from_secs(config.count(&settings::LIMITS_WAIT_SECONDS_MAX) as u64),
    }
}

fn read_offline_after(config: &Config) -> Option<Duration> {
    let seconds = config.count(&settings::AGENTS_OFFLINE_AFTER_SECONDS) as u64;
    (seconds > 0).then_some(Duration::from_secs(seconds))
}

fn read_retention(config: &Config) -> Retention {
    let days = |setting| {
        let days = config.count(setting) as u64;
        (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60))
    };
    Retention {
        events: days(&settings::RETENTION_EVENTS_DAYS),
        audit: days(&settings::RETENTION_AUDIT_DAYS),
        revisions: days(&settings::RETENTION_REVISIONS_DAYS),
    }
}

fn read_trusted_proxies(config: &Config) -> TrustedProxies {
    TrustedProxies::parse(config.text(&settings::TRUSTED_PROXIES)).expect("the setting was checked when it was read")
}

fn read_limits(config: &Config) -> Limits {
    Limits {
        connections_max: config.count(&settings::LIMITS_CONNECTIONS),
        connections_per_peer_max: config.count(&settings::LIMITS_CONNECTIONS_PER_PEER),
        ..Limits::default()
    }
}

/// Starts a broker over the configured database.
async fn start_broker(config: &Config, entropy: &Entropy) -> Result<Broker, StartError> {
    let url = config.text(&settings::DATABASE_URL);
    let redacted_url = settings::DATABASE_URL.redact(url);
    let store_error = |source| StartError::Store { database: redacted_url.clone(), source };
    if let Some(path) = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
        let store = open_sqlite(path)?;
        return Broker::start(store, system_clock(), entropy.clone()).await.map_err(store_error);
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
    Ok(broker)
}

/// Adds the settings of webhooks if there is an encryption key, and checks that it decrypts the stored secrets.
async fn with_webhooks(config: &Config, broker: Broker) -> Result<Broker, StartError> {
    let allow_private = config.is_on(&settings::WEBHOOKS_ALLOW_PRIVATE_TARGETS);
    let broker = match read_encryption_key(config)? {
        Some(key) => {
            let policy = TargetPolicy { allow_http: allow_private, allow_private };
            broker.with_webhooks(WebhookSettings { key, policy, sender: Sender::new(system_connector(policy)) })
        }
        None => broker,
    };
    let redacted_url = settings::DATABASE_URL.redact(config.text(&settings::DATABASE_URL));
    let checked = broker.check_encryption_key().await;
    checked
        .map_err(|source| StartError::Store { database: redacted_url, source })?
        .map_err(StartError::UndecryptableWebhook)?;
    Ok(broker)
}

fn read_encryption_key(config: &Config) -> Result<Option<EncryptionKey>, StartError> {
    let text = match config.path(&settings::WEBHOOKS_ENCRYPTION_KEY_FILE) {
        Some(path) => {
            Some(key::check_permissions(path).and_then(|()| std::fs::read_to_string(path)).map_err(|source| {
                let path = path.display().to_string();
                StartError::EncryptionKeyFile { path, source }
            })?)
        }
        None => config.get(&settings::WEBHOOKS_ENCRYPTION_KEY).map(str::to_owned),
    };
    text.map(|text| EncryptionKey::parse(text.trim())).transpose().map_err(StartError::EncryptionKey)
}

/// Opens SQLite. Its calls block, so they run on a separate thread, which ends with the store.
#[expect(clippy::disallowed_methods, reason = "the process owns threads")]
fn open_sqlite(path: &str) -> Result<SqliteStore, StartError> {
    create_private_file(path)?;
    let opened = SqliteStore::open_with_worker(path);
    let (store, worker) = opened.map_err(|source| StartError::Database { path: path.to_owned(), source })?;
    std::thread::spawn(move || worker.run());
    Ok(store)
}

/// Runs submissions on a separate thread, which ends with the store. They make many round trips to the database and must
/// not wait behind requests.
#[expect(clippy::disallowed_methods, reason = "the process owns threads")]
fn run_submitter_on_thread(submitter: Submitter) -> Result<(), StartError> {
    let runtime = build_runtime(1)?;
    std::thread::spawn(move || runtime.block_on(submitter.run()));
    Ok(())
}

/// Returns the function that runs long computations on the runtime's threads for blocking work.
#[expect(clippy::disallowed_methods, reason = "the process owns threads")]
fn run_on_thread() -> RunOnThread {
    Arc::new(|work| drop(tokio::task::spawn_blocking(work)))
}

/// Creates the database file readable by its owner only, because bundles may contain secrets.
fn create_private_file(path: &str) -> Result<(), StartError> {
    let created = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    created.map(drop).map_err(|source| StartError::DatabaseFile { path: path.to_owned(), source })
}

#[expect(clippy::disallowed_methods, reason = "the process owns the wall clock")]
fn system_clock() -> Clock {
    Clock::new(Timestamp::now)
}

#[expect(clippy::disallowed_methods, reason = "the process owns entropy")]
fn system_entropy() -> Entropy {
    Entropy::new(|bytes| getrandom::fill(bytes).expect("keys need entropy of the system"))
}
