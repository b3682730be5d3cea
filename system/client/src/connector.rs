//! The injected connector: opens connections over TCP, TLS or a simulated network.

use std::error::Error;

use http::Uri;
use hyper_util::client::legacy::connect::Connection;
use tower_service::Service;

/// One connection, as a connector returns it.
pub trait ConnectorStream: hyper::rt::Read + hyper::rt::Write + Connection + Unpin + Send + 'static {}

impl<T: hyper::rt::Read + hyper::rt::Write + Connection + Unpin + Send + 'static> ConnectorStream for T {}

/// Opens connections to an HTTP server. Every connector of hyper-util's client implements it.
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
