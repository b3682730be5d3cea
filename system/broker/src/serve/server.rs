//! Accepts connections until shutdown. Every connection is a task in a set that [`serve_with`] owns and drops.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::connection::{ServerContext, serve_encrypted, serve_plain};
use super::limits::Limits;
use crate::api::router;
use crate::broker::Broker;
use crate::metrics::Metrics;
use crate::tls::Tls;

/// How to serve.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// Encrypts every connection; without it none is.
    pub tls: Option<Tls>,
    /// How much a peer may take.
    pub limits: Limits,
}

/// The other end of a connection, as its listener names it.
pub trait Peer {
    /// Its address in the Internet, if it has one.
    fn ip(&self) -> Option<IpAddr>;
}

impl Peer for SocketAddr {
    fn ip(&self) -> Option<IpAddr> {
        Some(self.ip().to_canonical())
    }
}

/// What listeners of a simulated world name: nobody.
impl Peer for () {
    fn ip(&self) -> Option<IpAddr> {
        None
    }
}

/// Serves the broker until `shutdown`, then lets the requests that are under way finish.
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

/// The same, with options.
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
    });
    let (stop, stopped) = watch::channel(());
    let mut background = JoinSet::new();
    background.spawn({
        let broker = broker.clone();
        async move { broker.background().await }
    });
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let has_room = connections.len() < limits.connections_max;
        tokio::select! {
            biased; // The end first: a flood must not hold it up. Then what ended, which makes room for the new.
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => note(ended),
            (stream, peer) = listener.accept(), if has_room => {
                let (context, stopped) = (context.clone(), stopped.clone());
                match options.tls.as_ref().map(Tls::acceptor) {
                    None => connections.spawn(serve_plain(stream, peer.ip(), context, stopped)),
                    Some(tls) => connections.spawn(serve_encrypted(stream, tls, peer.ip(), context, stopped)),
                };
                if connections.len() == limits.connections_max {
                    full(&metrics);
                }
            }
        }
    }
    drop(listener);
    stop.send_replace(());
    // Polls that wait are answered now.
    broker.memory.answers.close();
    finish(connections, limits.shutdown_time_max).await;
    background.shutdown().await;
    broker.flush_heartbeats().await;
    Ok(())
}

/// Lets connections end by themselves. Who does not in time is cut off: every answer that was sent is durable anyway.
async fn finish(mut connections: JoinSet<()>, time_max: Duration) {
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            note(ended);
        }
    };
    if tokio::time::timeout(time_max, all_ended).await.is_err() {
        tracing::warn!(connections = connections.len(), "cut off at shutdown");
    }
}

/// Those that wait are not answered and not refused: someone must hear of it.
fn full(metrics: &Metrics) {
    metrics.connections_full();
    tracing::warn!("no room for further connections until one ends");
}

/// A handler that panics takes its connection with it and nothing else.
fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("a request ended in a panic");
    }
}
