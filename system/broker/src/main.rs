//! The broker as a process: flags, clock, entropy, files, signals. Everything else is in the library.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use axum::serve::ListenerExt;
use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use sindri_broker::{Broker, OpenError, SqliteStore, StoreError, serve};
use sindri_model::{Clock, Entropy, Pak};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

/// Keeps what every cluster should run, and tells their agents.
#[derive(Parser)]
#[command(name = "sindri-broker", version)]
struct Flags {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "HOST:PORT")]
    listen: String,
    /// The database, as sqlite:PATH.
    #[arg(long, default_value = "sqlite:sindri.db", value_name = "URL", env = "SINDRI_DATABASE_URL")]
    database_url: String,
    /// Where the administrator's key is kept: read at the first start if the file is there, else written.
    #[arg(long, value_name = "PATH")]
    admin_key_file: Option<PathBuf>,
    /// How to write log lines (to standard error).
    #[arg(long, value_enum, default_value_t = LogForm::Pretty)]
    log: LogForm,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogForm {
    /// Lines for people.
    Pretty,
    /// None at all.
    Off,
}

/// The broker cannot start.
#[derive(Debug, Error)]
enum StartError {
    #[error("--database-url must be like sqlite:PATH, not {0:?}")]
    DatabaseUrl(String),
    #[error("{path}: {source}")]
    Database { path: String, source: OpenError },
    #[error("the database {path} cannot be opened: {source}")]
    DatabaseFile { path: String, source: io::Error },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error("the key file {path}: {reason}")]
    KeyFile { path: String, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let level = match flags.log {
        LogForm::Pretty => LevelFilter::INFO,
        LogForm::Off => LevelFilter::OFF,
    };
    tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level).with_target(false).init();
    match run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sindri-broker: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(flags: &Flags) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(start(flags))
}

async fn start(flags: &Flags) -> Result<(), StartError> {
    // First: a signal that comes while it starts is heard too.
    let signals = Signals::listen()?;
    let path = sqlite_path(&flags.database_url)?;
    private_file(path)?;
    let store =
        SqliteStore::open(path, None).map_err(|source| StartError::Database { path: path.to_owned(), source })?;
    let entropy = system_entropy();
    let broker = Broker::new(store, system_clock(), entropy.clone());
    first_start(&broker, flags.admin_key_file.as_deref(), &entropy).await?;
    let listen_error = |source| StartError::Listen { address: flags.listen.clone(), source };
    let listener = TcpListener::bind(&flags.listen).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    println!("READY http://{address}");
    io::stdout().flush()?;
    serve_until_signal(listener, broker, signals).await?;
    Ok(())
}

fn sqlite_path(url: &str) -> Result<&str, StartError> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")).unwrap_or_default();
    if path.is_empty() { Err(StartError::DatabaseUrl(url.to_owned())) } else { Ok(path) }
}

/// The database holds every bundle, secrets included: it is created for its owner only.
fn private_file(path: &str) -> Result<(), StartError> {
    let created = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    created.map(drop).map_err(|source| StartError::DatabaseFile { path: path.to_owned(), source })
}

/// Makes the administrator's key, once. The file is written before the database, so that a crash in between
/// loses nothing: the next start finds the key in the file.
async fn first_start(broker: &Broker, key_file: Option<&Path>, entropy: &Entropy) -> Result<(), StartError> {
    if broker.has_admin().await? {
        return Ok(());
    }
    let pak = match key_file {
        Some(path) => key_in_file(path, entropy)?,
        None => Pak::mint(entropy),
    };
    broker.initialise(&pak).await?;
    match key_file {
        Some(path) => println!("the administrator's key is in {}", path.display()),
        None => println!("the administrator's key, shown this once: {}", pak.reveal()),
    }
    Ok(())
}

fn key_in_file(path: &Path, entropy: &Entropy) -> Result<Pak, StartError> {
    let fault = |reason: String| StartError::KeyFile { path: path.display().to_string(), reason };
    match std::fs::read_to_string(path) {
        Ok(text) => return Pak::parse(text.trim()).map_err(|error| fault(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fault(error.to_string())),
    }
    let pak = Pak::mint(entropy);
    write_key(path, &pak).map_err(|error| fault(error.to_string()))?;
    Ok(pak)
}

/// The file appears whole or not at all, readable by its owner only.
fn write_key(path: &Path, pak: &Pak) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".draft");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    writeln!(file, "{}", pak.reveal())?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
}

/// The signals that ask the process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Resolves when one of them has come.
    async fn end(mut self) {
        tokio::select! {
            biased; // Either will do.
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        tracing::info!("shutting down");
    }
}

async fn serve_until_signal(listener: TcpListener, broker: Broker, signals: Signals) -> io::Result<()> {
    let listener = listener.tap_io(|stream| {
        // Only a matter of speed, and a peer that is gone already shows at the first read.
        let _ = stream.set_nodelay(true);
    });
    serve(listener, broker, signals.end()).await
}

#[expect(clippy::disallowed_methods, reason = "the process owns the wall clock and hands it in")]
fn system_clock() -> Clock {
    Clock::new(Timestamp::now)
}

#[expect(clippy::disallowed_methods, reason = "the process owns entropy and hands it in")]
fn system_entropy() -> Entropy {
    Entropy::new(|bytes| getrandom::fill(bytes).expect("without entropy no key can be made"))
}
