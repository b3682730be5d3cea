//! HTTP service that sends requests to a cluster over any connector: adds the base URL, authentication and TLS.
//!
//! kube's own retry layer is left out, because requests are already retried by [`super::RetryPolicy`].

use std::time::Duration;

use http::uri::Scheme;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use sindri_client::Connector;
use thiserror::Error;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder};

/// Time after which a connection ends whose bytes the other end does not acknowledge. Without it the kernel sends them again for
/// minutes: an object would be created after the stack was removed, or while another process is the leader.
pub const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(8);

/// The cluster's configuration does not give a client.
#[derive(Debug, Error)]
#[error("the cluster's configuration cannot be used: {0}")]
pub struct ConnectError(#[from] kube::Error);

/// Service that sends requests to one cluster. Not a `kube::Client`, which passes each request through a worker task: a pass
/// sends thousands.
pub type Sender = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// Builds a `kube::Client`, for code that uses kube's API.
pub fn kube_client(config: &Config, connector: impl Connector) -> Result<Client, ConnectError> {
    Ok(Client::new(sender(config, connector)?, config.default_namespace.clone()))
}

/// Builds the service for the cluster of `config`, with connections from `connector`.
pub fn sender(config: &Config, connector: impl Connector) -> Result<Sender, ConnectError> {
    if config.cluster_url.scheme() == Some(&Scheme::HTTPS) {
        assemble(config, config.rustls_https_connector_with_connector(connector)?)
    } else {
        assemble(config, connector)
    }
}

fn assemble(config: &Config, connector: impl Connector) -> Result<Sender, ConnectError> {
    let mut bounded = TimeoutConnector::new(connector);
    bounded.set_connect_timeout(config.connect_timeout);
    bounded.set_read_timeout(config.read_timeout);
    bounded.set_write_timeout(config.write_timeout);
    // The read timeout counts from the last write, not from the last response.
    bounded.set_reset_reader_on_write(true);
    let http: HyperClient<_, Body> =
        HyperClient::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(bounded);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(BoxCloneSyncService::new(service))
}
