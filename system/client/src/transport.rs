//! Pool of connections with timeouts, which hides the type of the connector.
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
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);
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

struct Pooled<C>(HyperClient<TimeoutConnector<C>, Full<Bytes>>);

impl<C: Connector> Transport for Pooled<C> {
    fn send(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        Box::pin(self.0.request(request))
    }
}

/// Creates a pool of connections over `connector`.
pub(crate) fn pooled<C: Connector>(connector: C) -> impl Transport + 'static {
    let mut bounded = TimeoutConnector::new(connector);
    bounded.set_connect_timeout(Some(CONNECT_TIMEOUT));
    bounded.set_read_timeout(Some(SILENCE_TIMEOUT));
    bounded.set_write_timeout(Some(SILENCE_TIMEOUT));
    // Time without traffic before a request does not count.
    bounded.set_reset_reader_on_write(true);
    let client = HyperClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .build(bounded);
    Pooled(client)
}
