//! The broker process: settings, clock, entropy, files and signals. Everything else is in the library.

mod process;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use sindri_broker::{Bounds, Limits, RunOnThread, ServeOptions, TrustedProxies, serve_with};
use sindri_process::{Config, Signals, Startup, TraceExport, logs};
use sindri_traces::with_request_id;
use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::signal::unix::{SignalKind, signal};

use process::database::{StartedBroker, start_broker};
use process::oidc::with_oidc;
use process::reload::{Reloader, read_live_settings, reload_after_hangups};
use process::start_error::StartError;
use process::system::{build_runtime, system_entropy};
use process::tls_files::{TlsFiles, TlsFilesError};
use process::webhooks::{check_bundles, with_webhooks};
use process::{commands, descriptors, key, pages, settings};

/// Limit on connections that wait to be accepted.
const BACKLOG: u32 = 4_096;

/// A request makes many small, short-lived allocations, which mimalloc handles faster than the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let start_export = |endpoint| TraceExport::start(endpoint, settings::PROGRAM.name, settings::PROGRAM.version);
    let traces = config.get(&settings::OTLP_ENDPOINT).map(start_export).transpose()?;
    logs::init(config.text(&settings::LOG_FORM), config.text(&settings::LOG_LEVEL), request_id, traces.as_ref());
    descriptors::raise_limit();
    let runtime = build_runtime(config.count(&settings::WORKERS))?;
    let result = match command {
        Some((name, arguments)) => runtime.block_on(commands::run(&config, &name, &arguments)),
        None => runtime.block_on(start(&config)),
    };
    traces.into_iter().for_each(TraceExport::end);
    result
}

async fn start(config: &Config) -> Result<(), StartError> {
    // First, so that a signal during the start is handled too.
    let signals = Signals::listen()?;
    let hangups = signal(SignalKind::hangup())?;
    let files = open_tls_files(config)?;
    let reloader = Reloader::new(std::env::args_os().collect(), files.as_ref().map(TlsFiles::pair))?;
    let entropy = system_entropy();
    let StartedBroker { broker, database } = start_broker(config, &entropy).await?;
    let broker = broker
        .with_bounds(read_bounds(config))
        .with_threads(run_on_thread())
        .with_reload(Arc::new(move |broker| reloader.reload(broker)))
        .with_trusted_proxies(read_trusted_proxies(config))
        .with_offline_after(read_offline_after(config));
    broker.replace_live_settings(read_live_settings(config));
    let broker = with_webhooks(config, broker).await?;
    check_bundles(config, &broker).await?;
    let broker = with_oidc(config, broker)?;
    let key_file = Path::new(config.text(&settings::ADMIN_KEY_FILE));
    key::create_admin_key(&broker, key_file, &entropy, config.is_on(&settings::PRINT_ADMIN_KEY)).await?;
    let listen_error = |source| StartError::Listen { address: config.text(&settings::LISTEN).to_owned(), source };
    let listener = listen(config.text(&settings::LISTEN)).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    let scheme = if files.is_some() { "https" } else { "http" };
    if files.is_none() && !address.ip().is_loopback() {
        tracing::warn!(%address, "keys and bundles are sent without encryption: set tls.certificate_file and tls.key_file");
    }
    if config.is_on(&settings::PROXY_PROTOCOL) && config.text(&settings::TRUSTED_PROXIES).is_empty() {
        tracing::warn!("proxy_protocol has no effect, because trusted_proxies names no proxy");
    }
    println!("READY {scheme}://{address}");
    io::stdout().flush()?;
    let listener = listener.tap_io(|stream| {
        // Only improves latency; if the client has disconnected, the first read fails.
        let _ = stream.set_nodelay(true);
    });
    let options = ServeOptions {
        tls: files.as_ref().map(TlsFiles::tls),
        limits: read_limits(config),
        has_proxy_headers: config.is_on(&settings::PROXY_PROTOCOL),
    };
    tokio::select! {
        biased; // Only serving ends the process.
        served = serve_with(listener, broker.clone(), options, signals.end()) => served?,
        never = reload_after_hangups(hangups, broker) => match never {},
        never = follow_tls_files(files) => match never {},
    }
    database.await_closed().await;
    Ok(())
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

/// Returns the function that runs long computations on the runtime's threads for blocking work.
#[expect(clippy::disallowed_methods, reason = "the process owns threads")]
fn run_on_thread() -> RunOnThread {
    Arc::new(|work| drop(tokio::task::spawn_blocking(work)))
}
