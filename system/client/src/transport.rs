//! Connections to the broker: pooling, timeouts, and the connector's type erased.
//!
//! Left out: what a request means, and the deadline of a whole request (`client.rs`).

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::client::legacy::{self, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_service::Service;

use crate::tls;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be silent in either direction. Longer than an idle connection is kept, so
/// that it ends only connections that are stuck.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long an unused connection is kept: longer than the usual pause between two polls.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Unused connections that are kept.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// What a connector returns: one connection.
pub trait ConnectorStream: hyper::rt::Read + hyper::rt::Write + Connection + Unpin + Send + 'static {}

impl<T: hyper::rt::Read + hyper::rt::Write + Connection + Unpin + Send + 'static> ConnectorStream for T {}

/// What makes connections, to a broker or to any other HTTP server. Every connector of hyper-util's client is one.
pub trait Connector:
    Service<Uri, Response: ConnectorStream, Error: Into<BoxError>, Future: Send + 'static> + Clone + Send + Sync + 'static
{
}

impl<T> Connector for T where
    T: Service<Uri, Response: ConnectorStream, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

type BoxError = Box<dyn Error + Send + Sync>;

/// The answer to one request, its body not yet read.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Response<Incoming>, legacy::Error>> + Send>>;

/// Sends requests; whatever the connector is.
pub(crate) trait Transport: Send + Sync {
    fn send(&self, request: Request<Full<Bytes>>) -> Answer;
}

struct Pooled<C>(HyperClient<TimeoutConnector<C>, Full<Bytes>>);

impl<C: Connector> Transport for Pooled<C> {
    fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        Box::pin(self.0.request(request))
    }
}

/// A pool of connections over `connector`.
pub(crate) fn pooled<C: Connector>(connector: C) -> impl Transport + 'static {
    let mut bounded = TimeoutConnector::new(connector);
    bounded.set_connect_timeout(Some(CONNECT_TIMEOUT));
    bounded.set_read_timeout(Some(SILENCE_TIMEOUT));
    bounded.set_write_timeout(Some(SILENCE_TIMEOUT));
    // The silence before a request is not the broker's.
    bounded.set_reset_reader_on_write(true);
    let client = HyperClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .build(bounded);
    Pooled(client)
}

/// The innermost cause says it best: "connection refused", not "client error (Connect)".
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = inner(cause) {
        cause = inner;
    }
    cause.downcast_ref().map_or_else(|| cause.to_string(), tls::words)
}

/// An I/O error skips what it wraps when it is asked for its source.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}
