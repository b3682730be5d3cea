//! Connections of HTTP/2. Their tasks run inside the future of the connection, and end with it.

use std::future::Future;
use std::pin::{Pin, pin};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::HttpService;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Largest number of concurrent requests of a connection, as in the real server.
const STREAMS_MAX: u32 = 100;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Sends tasks to the connection that runs them.
#[derive(Clone)]
struct ConnectionTasks(UnboundedSender<Task>);

impl<F> Executor<F> for ConnectionTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        // A connection that has ended runs nothing more.
        let _ended = self.0.send(Box::pin(task));
    }
}

/// Largest size of the headers of a request in bytes, as in the real server: selectors may be long.
const HEADER_BYTES_MAX: u32 = 1024 * 1024;

/// Serves a connection until it ends.
pub(super) async fn serve_connection<S, H>(stream: S, service: H)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: HttpService<Incoming>,
    H::Error: Into<BoxError>,
    H::Future: Send + 'static,
    H::ResBody: Send + 'static,
    <H::ResBody as Body>::Data: Send,
    <H::ResBody as Body>::Error: Into<BoxError>,
{
    let (sender, mut started) = unbounded_channel();
    let mut builder = http2::Builder::new(ConnectionTasks(sender));
    builder.auto_date_header(false).max_concurrent_streams(STREAMS_MAX).max_header_list_size(HEADER_BYTES_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut tasks = FuturesUnordered::new();
    loop {
        // Requests first, so that their responses are sent when the connection is polled.
        tokio::select! {
            biased;
            Some(()) = tasks.next() => {}
            Some(task) = started.recv() => tasks.push(task),
            // A broken connection is handled by the client, which may retry.
            _ended = &mut connection => return,
        }
    }
}
