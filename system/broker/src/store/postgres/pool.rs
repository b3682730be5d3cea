//! Pools of connections.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PostgresError;
use crate::trust::load_system_trust;

/// Time after which a call fails with `StoreError::Unavailable`.
pub(super) const CALL_MAX: Duration = Duration::from_secs(10);
/// Time limit of connecting to the server.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Creates a pool of at most `connections` connections; the first call opens the first connection.
pub(super) fn create_pool(config: &Config, tls: &MakeRustlsConnect, connections: usize) -> Result<Pool, PostgresError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycling))
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CALL_MAX))
        .create_timeout(Some(CONNECT_MAX))
        .build()
        .map_err(|error| PostgresError::Unreachable(error.to_string()))
}

/// Returns the TLS configuration. The URL decides if TLS is used; if it is, this machine must trust the server's
/// certificate.
pub(super) fn tls_config(config: &Config) -> rustls::ClientConfig {
    let trust = if config.get_ssl_mode() == SslMode::Disable { None } else { load_system_trust() };
    trust.map_or_else(without_roots, |trust| (*trust).clone())
}

/// A configuration that trusts no certificate.
fn without_roots() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions of TLS")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
