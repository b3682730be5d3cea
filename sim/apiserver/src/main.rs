//! `sindri-apiserver`: the simulated API server on a real port, for `kubectl` and for tests of other programs.
//!
//! Plain HTTP on the loopback interface, without authentication: never meant to be reached from elsewhere.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use sindri_apiserver::{ApiServer, Clock, OpenGate, SharedServer, Timestamp, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// A Kubernetes API server that runs anywhere and remembers nothing.
#[derive(Parser)]
#[command(name = "sindri-apiserver", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve on 127.0.0.1 until SIGTERM or SIGINT.
    Serve {
        /// The port; 0 takes a free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Where to write a kubeconfig for this server.
        #[arg(long)]
        kubeconfig: Option<PathBuf>,
        /// The seed of every identity that the server gives out.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("cannot start: {0}")]
    Runtime(#[source] std::io::Error),
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen { port: u16, source: std::io::Error },
    #[error("cannot write the kubeconfig {path}: {source}")]
    Kubeconfig { path: PathBuf, source: std::io::Error },
}

impl StartError {
    /// 2 for what the user can put right, 1 for the rest.
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Runtime(_) => ExitCode::from(1),
            Self::Listen { .. } | Self::Kubeconfig { .. } => ExitCode::from(2),
        }
    }
}

fn main() -> ExitCode {
    let Command::Serve { port, kubeconfig, seed } = Arguments::parse().command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Runtime);
    let served = runtime.and_then(|runtime| runtime.block_on(run(port, kubeconfig.as_deref(), seed)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}

async fn run(port: u16, kubeconfig: Option<&Path>, seed: u64) -> Result<(), StartError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Runtime)?;
    let listener =
        TcpListener::bind(("127.0.0.1", port)).await.map_err(|source| StartError::Listen { port, source })?;
    let address = listener.local_addr().map_err(|source| StartError::Listen { port, source })?;
    let url = format!("http://{address}");
    if let Some(path) = kubeconfig {
        std::fs::write(path, kubeconfig_for(&url))
            .map_err(|source| StartError::Kubeconfig { path: path.to_owned(), source })?;
    }
    let clock: Clock = Arc::new(wall_clock);
    let server = SharedServer::new(ApiServer::new(seed, wall_clock()).without_journal());
    // Whoever started this may have stopped reading; that is no reason not to serve.
    let _unread = writeln!(std::io::stdout(), "READY {url}");
    let stop = async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    serve(listener, server, clock, Arc::new(OpenGate), stop).await;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
fn wall_clock() -> Timestamp {
    Timestamp::now()
}

fn kubeconfig_for(url: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sindri\n\
         clusters:\n- name: sindri\n  cluster:\n    server: {url}\n\
         users:\n- name: sindri\n  user: {{}}\n\
         contexts:\n- name: sindri\n  context:\n    cluster: sindri\n    user: sindri\n"
    )
}
