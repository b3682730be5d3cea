//! Pools of connections, and the limits of each connection.
//!
//! The limits end what a broker has left behind: a replica that stops in a transaction, or that no longer reads, holds
//! its locks for [`IDLE_IN_TRANSACTION_MAX_MS`] at most.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PostgresError;
use super::origin::Origin;

/// Time after which a call fails with `StoreError::Unavailable`.
pub(super) const CALL_MAX: Duration = Duration::from_secs(10);
/// Time limit of connecting to the server.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Time after which the server ends a transaction whose broker sends nothing more.
const IDLE_IN_TRANSACTION_MAX_MS: u32 = 3_000;
/// Time limit of waiting for a lock. Longer than [`IDLE_IN_TRANSACTION_MAX_MS`], so that calls which wait for a replica
/// that has stopped succeed; shorter than [`CALL_MAX`], so that no call of a gone caller stays queued for the lock.
const LOCK_MAX_MS: u32 = 8_000;
/// Time limit of a statement.
const STATEMENT_MAX_MS: u32 = 9_000;
/// Time after which the server gives up on a broker that does not acknowledge its data.
const UNACKNOWLEDGED_MAX_MS: u32 = 9_000;
/// Idle time after which the system checks that the server is still there. PostgreSQL's default is two hours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// Sets the limits of connecting, and of data that the server does not acknowledge, which the URL does not set.
pub(super) fn set_network_limits(config: &mut Config) {
    // A standby would give old target states and revoked keys.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(CALL_MAX);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.keepalives_interval(KEEPALIVE_INTERVAL).keepalives_retries(KEEPALIVE_RETRIES);
    }
}

/// Warns if the URL allows a connection over the network without encryption.
pub(super) fn warn_without_encryption(config: &Config) {
    let is_remote = |host: &Host| match host {
        Host::Tcp(name) => name != "localhost" && !name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        Host::Unix(_) => false,
    };
    if config.get_ssl_mode() != SslMode::Require && config.get_hosts().iter().any(is_remote) {
        tracing::warn!("the connection to the database may be in plain text: add sslmode=verify-full to database.url");
    }
}

/// Creates a pool of at most `connections` connections; the first call opens the first connection.
pub(super) fn create_pool(
    config: &Config,
    tls: &MakeRustlsConnect,
    connections: usize,
    origin: &Arc<Origin>,
) -> Result<Pool, PostgresError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let (checked, current) = (origin.clone(), origin.clone());
    Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycling))
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CALL_MAX))
        .create_timeout(Some(CONNECT_MAX))
        .post_create(Hook::async_fn(move |client, metrics| {
            let (origin, created) = (checked.clone(), metrics.created);
            Box::pin(async move {
                let prepare = async {
                    configure_session(client).await.map_err(HookError::Backend)?;
                    origin.check_connection(client, created).await;
                    Ok(())
                };
                let is_late = |_| HookError::message("the server does not respond");
                timeout(CONNECT_MAX, prepare).await.map_err(is_late)?
            })
        }))
        .pre_recycle(Hook::sync_fn(move |_, metrics| match current.is_current(metrics.created) {
            true => Ok(()),
            false => Err(HookError::message("the connection goes to a server that was replaced")),
        }))
        .build()
        .map_err(|error| PostgresError::Unreachable(error.to_string()))
}

/// Sets limits that the server enforces, also when this process has stopped. Turns off the compiler of queries: the longest
/// query reads the overview of all stacks, and to compile it takes many times as long as to run it.
async fn configure_session(client: &ClientWrapper) -> Result<(), tokio_postgres::Error> {
    let settings = format!(
        "SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MAX_MS}; SET lock_timeout = {LOCK_MAX_MS};
         SET statement_timeout = {STATEMENT_MAX_MS}; SET tcp_user_timeout = {UNACKNOWLEDGED_MAX_MS}; SET jit = off"
    );
    client.batch_execute(&settings).await
}
