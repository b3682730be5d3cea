//! Accepts connections until shutdown. Every connection is a task in a set that [`serve_with`] owns and drops.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{ServerContext, serve_in_place};
use super::limits::Limits;
use super::peers::PeerConnections;
use super::room::Room;
use crate::api::http::connection_info::KeyAcceptedFlag;
use crate::api::router;
use crate::broker::Broker;
use crate::metrics::Metrics;
use crate::tls::Tls;

/// Shortest time between two warnings about the limit on connections.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Options of a server.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// TLS for every connection; `None` serves plain HTTP.
    pub tls: Option<Tls>,
    /// Limits of connections.
    pub limits: Limits,
    /// True if connections of trusted proxies begin with a header of the PROXY protocol.
    pub has_proxy_headers: bool,
}

/// Address type of a listener.
pub trait Peer {
    /// Returns the IP address, if there is one.
    fn ip(&self) -> Option<IpAddr>;
}

impl Peer for SocketAddr {
    fn ip(&self) -> Option<IpAddr> {
        Some(self.ip().to_canonical())
    }
}

/// Listeners of the simulation have no addresses.
impl Peer for () {
    fn ip(&self) -> Option<IpAddr> {
        None
    }
}

/// Serves the broker with default options until `shutdown`, then lets requests in progress finish.
pub async fn serve<L>(
    listener: L,
    broker: Broker,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener,
    L::Addr: Peer,
{
    serve_with(listener, broker, ServeOptions::default(), shutdown).await
}

/// Serves the broker until `shutdown`, then lets requests in progress finish.
pub async fn serve_with<L>(
    mut listener: L,
    broker: Broker,
    options: ServeOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()>
where
    L: Listener,
    L::Addr: Peer,
{
    let limits = options.limits;
    let metrics = broker.metrics.clone();
    let context = Arc::new(ServerContext {
        broker: broker.clone(),
        router: router(broker.clone()),
        limits,
        metrics: metrics.clone(),
        peers: PeerConnections::default(),
        has_proxy_headers: options.has_proxy_headers,
    });
    let stopping = CancellationToken::new();
    let mut background = JoinSet::new();
    background.spawn(broker.clone().run_background());
    let (mut connections, room) = (JoinSet::new(), Room::new(limits.connections_max));
    let mut warned_at = None;
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased; // Shutdown first: new connections must not delay it. Then ended connections: those that made room are open until then.
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => log_panic(ended),
            (stream, peer) = listener.accept() => {
                let (tls, was_full) = (options.tls.as_ref().map(Tls::acceptor), room.is_full());
                let place = room.enter(KeyAcceptedFlag::default());
                connections.spawn(serve_in_place(stream, peer.ip(), tls, context.clone(), stopping.clone(), place));
                if !was_full && room.is_full() {
                    report_full(&metrics, &mut warned_at);
                }
            }
        }
    }
    drop(listener);
    stopping.cancel();
    // Ends the wait of polls.
    broker.memory.target_states.close();
    await_connections(connections, limits.shutdown_time_max).await;
    background.shutdown().await;
    broker.flush().await;
    Ok(())
}

/// Waits until connections end. Those that do not end in time are closed, which is safe: every response that was sent is
/// durable.
async fn await_connections(mut connections: JoinSet<()>, time_max: Duration) {
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    if tokio::time::timeout(time_max, all_ended).await.is_err() {
        tracing::warn!(connections = connections.len(), "closed connections at shutdown before their requests ended");
    }
}

/// Counts that further connections take the places of others, and reports it once per minute.
fn report_full(metrics: &Metrics, warned_at: &mut Option<Instant>) {
    metrics.record_connections_full();
    let now = Instant::now();
    if warned_at.is_some_and(|last| now.duration_since(last) < WARNING_INTERVAL) {
        return;
    }
    *warned_at = Some(now);
    tracing::warn!("the limit on connections is reached: those without an accepted key are closed for new ones");
}

/// Logs a panic of a handler, which ends only its own connection.
fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("a request handler panicked");
    }
}
