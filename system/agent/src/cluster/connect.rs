//! How requests get to a cluster, over any connector: addressed, authenticated, encrypted.
//!
//! kube's own retry layer is off: the retry policy is ours, and must not be doubled.

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

/// A client cannot be made from what was given.
#[derive(Debug, Error)]
#[error("the cluster's configuration cannot be used: {0}")]
pub struct ConnectError(#[from] kube::Error);

/// Sends requests to one cluster. A `kube::Client` hands every one of them to a worker task first, and a pass makes thousands.
pub type Sender = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// For everything that is written with kube.
pub fn kube_client(config: &Config, connector: impl Connector) -> Result<Client, ConnectError> {
    Ok(Client::new(sender(config, connector)?, config.default_namespace.clone()))
}

/// A way to the cluster of `config`, whose connections come from `connector`.
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
    // The silence before a request is not the server's.
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
