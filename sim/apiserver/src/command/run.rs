//! Parts that all entry points share: the wall clock, entropy, signals, and serving until shutdown.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::client::legacy::connect::HttpConnector;
use sindri_apiserver::{Admin, Clock, Port, SharedServer, Timestamp, WebhookCaller, WebhookClient, serve_port};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::rustls::ServerConfig;

use super::files::StartError;

/// Returns a future that resolves at SIGTERM or SIGINT.
pub(super) fn shutdown_signal() -> Result<impl Future<Output = ()>, StartError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(StartError::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StartError::Runtime)?;
    Ok(async move {
        tokio::select! {
            biased; // Both have the same effect.
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Opens a listener; returns it with its address.
pub(super) async fn listen(host: &str, port: u16) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address: format!("{host}:{port}"), source };
    let listener = TcpListener::bind((host, port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Serves an API server with its administrator's endpoints until shutdown.
pub(super) async fn serve_until_shutdown(
    listener: TcpListener,
    server: SharedServer,
    tls: Option<Arc<ServerConfig>>,
    shutdown: impl Future<Output = ()>,
) {
    let admin = Admin::new(Arc::new(wall_clock));
    let clock: Clock = admin.clock();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let webhooks: Arc<dyn WebhookCaller> = Arc::new(WebhookClient::encrypted(connector));
    let port = Port { tls, admin: Some(admin.clone()), webhooks: Some(webhooks) };
    serve_port(listener, server, clock, Arc::new(admin), port, shutdown).await;
}

#[expect(clippy::disallowed_methods, reason = "the binary is where real time comes in")]
pub(super) fn wall_clock() -> Timestamp {
    Timestamp::now()
}

/// Returns a random token.
#[expect(clippy::disallowed_methods, reason = "the binary is where entropy comes in")]
pub(super) fn random_token() -> Result<String, StartError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StartError::Runtime(std::io::Error::other(error.to_string())))?;
    Ok(hex::encode(bytes))
}
