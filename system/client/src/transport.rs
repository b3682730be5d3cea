//! Connection pool with timeouts, behind a trait that hides the type of the connector.
//!
//! The timeout of a whole request is in `client.rs`.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{self, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::connector::Connector;

/// Timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout without traffic in either direction. Longer than `IDLE_TIMEOUT`, so that it closes only stuck connections.
const TRAFFIC_TIMEOUT: Duration = Duration::from_secs(120);
/// Time for which an unused connection is kept: longer than the usual pause between two polls.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Maximum number of unused connections.
const IDLE_CONNECTIONS_MAX: usize = 4;

/// The response to one request, its body not yet read.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Incoming>, legacy::Error>> + Send>>;

/// Sends requests over any connector.
pub(crate) trait Transport: Send + Sync {
    fn send(&self, request: Request<Full<Bytes>>) -> ResponseFuture;
}

/// Connection pool of hyper's client.
struct ConnectionPool<C>(HyperClient<TimeoutConnector<C>, Full<Bytes>>);

impl<C: Connector> Transport for ConnectionPool<C> {
    fn send(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        Box::pin(self.0.request(request))
    }
}

/// Creates a connection pool over `connector`.
pub(crate) fn pool_connections<C: Connector>(connector: C) -> impl Transport + 'static {
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_read_timeout(Some(TRAFFIC_TIMEOUT));
    connector.set_write_timeout(Some(TRAFFIC_TIMEOUT));
    // Sending a request restarts the read timeout: the time for which the connection was unused does not count.
    connector.set_reset_reader_on_write(true);
    let client = HyperClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .build(connector);
    ConnectionPool(client)
}
