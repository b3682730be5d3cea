//! What every way to start the program has in common: real time, real entropy, signals, and serving until the end.

use std::future::Future;
use std::sync::Arc;

use axum::serve::ListenerExt;
use sindri_apiserver::{Admin, ApiServer, Clock, Port, SharedServer, Timestamp, serve_port};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::rustls::ServerConfig;

use super::files::StartError;

/// Resolves when the process is asked to end.
pub(super) fn asked_to_end() -> Result<impl Future<Output = ()>, StartError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Runtime)?;
    Ok(async move {
        tokio::select! {
            biased; // Either is as good.
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// A listener, and the address that it got.
pub(super) async fn listen(host: &str, port: u16) -> Result<(TcpListener, String), StartError> {
    let failed = |source| StartError::Listen { address: format!("{host}:{port}"), source };
    let listener = TcpListener::bind((host, port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?.to_string();
    Ok((listener, address))
}

/// Serves a machine, with its administrator's endpoint, until the end.
pub(super) async fn serve_until(
    listener: TcpListener,
    machine: ApiServer,
    tls: Option<Arc<ServerConfig>>,
    end: impl Future<Output = ()>,
) {
    let admin = Admin::new(Arc::new(wall_clock));
    let clock: Clock = admin.clock();
    let port = Port { tls, admin: Some(admin.clone()) };
    let listener = listener.tap_io(|stream| {
        // As the real one: what is said in pieces, as a watch is, does not wait for the peer to confirm the piece before.
        // Only a matter of speed, and a peer that is gone already shows at the first read.
        let _ = stream.set_nodelay(true);
    });
    serve_port(listener, SharedServer::new(machine), clock, Arc::new(admin), port, end).await;
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
pub(super) fn wall_clock() -> Timestamp {
    Timestamp::now()
}

/// A token that nobody can guess.
#[expect(clippy::disallowed_methods, reason = "the binary is where entropy comes in")]
pub(super) fn random_token() -> Result<String, StartError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StartError::Runtime(std::io::Error::other(error.to_string())))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
