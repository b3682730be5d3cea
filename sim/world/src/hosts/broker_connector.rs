//! Connector of the clients of several brokers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use tower_service::Service;

use crate::engine::Connector;
use crate::scenario::broker_name;

/// Time for which a client waits for one broker before it tries the next.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Connects to the brokers in turn, as a load balancer would: each connection goes to the next one that accepts it.
#[derive(Clone)]
pub struct BrokerConnector {
    connector: Connector,
    count: usize,
    next: Arc<AtomicUsize>,
}

impl BrokerConnector {
    /// Creates a connector to `count` brokers that begins with the broker of index `first`.
    pub fn new(connector: Connector, count: usize, first: usize) -> Self {
        Self { connector, count, next: Arc::new(AtomicUsize::new(first)) }
    }
}

impl Service<Uri> for BrokerConnector {
    type Response = <Connector as Service<Uri>>::Response;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if self.count == 1 {
            return Box::pin(self.connector.call(uri));
        }
        let mut this = self.clone();
        Box::pin(async move {
            let mut last = io::Error::from(io::ErrorKind::TimedOut);
            for _ in 0..this.count {
                let index = this.next.fetch_add(1, Ordering::Relaxed) % this.count;
                let uri = format!("http://{}", broker_name(index)).parse().expect("names of hosts are valid");
                match tokio::time::timeout(CONNECT_TIMEOUT, this.connector.call(uri)).await {
                    Ok(Ok(stream)) => return Ok(stream),
                    Ok(Err(error)) => last = error,
                    Err(_) => {}
                }
            }
            Err(last)
        })
    }
}
