//! The store in PostgreSQL: for several brokers at once behind a load balancer.
//!
//! Each call takes a connection from a bounded pool. Submissions go through one task, so that those which wait together
//! share a transaction: they would wait for each other's numbers anyway. Brokers hear of each other's changes by
//! NOTIFY, and look by themselves now and then in case one was missed.

mod listener;
mod schema;
mod session;
mod submitter;

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use sindri_model::wire::DeploymentObject;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use self::listener::Listener;
use self::session::PostgresSession;
pub use self::submitter::Submitter;
use super::records::{Change, StoreError, Stored, Watcher};
use super::sql::database::{Database, Deed, Sql, Weight};
use super::sql::stacks::submissions::{Submission, Waiting};
use crate::trust::system_trust;

/// Submissions that wait.
const QUEUE_MAX: usize = 16_384;
/// After this a call is given up; the caller is told to come again.
const CALL_MAX: Duration = Duration::from_secs(10);
/// How long to wait for a connection to the server.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A store in PostgreSQL.
pub type PostgresStore = Sql<Postgres>;

/// A database of a PostgreSQL server.
pub struct Postgres {
    pool: Pool,
    submissions: mpsc::Sender<Waiting>,
    listener: Listener,
    watcher: Arc<OnceLock<Watcher>>,
    /// The task that carries submissions out, if it is one of this runtime, ends with the store.
    tasks: JoinSet<()>,
}

/// The database cannot be used as a store.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// The address is not one.
    #[error("not an address of a PostgreSQL database: {0}")]
    Address(String),
    /// The server does not answer, or refuses.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// A newer Sindri has migrated it.
    #[error(
        "the database has schema version {found}, and this broker knows versions up to {known}: use a newer broker"
    )]
    Newer {
        /// The version of the database.
        found: i64,
        /// The newest version of this broker.
        known: usize,
    },
    /// The tables cannot be made.
    #[error("the schema cannot be brought up to date: {0}")]
    Migration(String),
}

impl PostgresStore {
    /// Connects to the database at `url` with at most `connections` connections, and brings it to the newest schema.
    /// Submissions are carried out by a task of this runtime.
    pub async fn open(url: &str, connections: usize) -> Result<Self, PostgresError> {
        let (mut store, submitter) = Self::open_with_submitter(url, connections).await?;
        store.0.tasks.spawn(submitter.run());
        Ok(store)
    }

    /// The same, with submissions carried out by a submitter that its owner runs. On a runtime of its own, with a
    /// thread of its own, none of the many answers that a submission waits for stands in line behind requests.
    pub async fn open_with_submitter(url: &str, connections: usize) -> Result<(Self, Submitter), PostgresError> {
        let mut config = Config::from_str(url).map_err(|error| PostgresError::Address(error.to_string()))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_MAX);
        }
        let tls = MakeRustlsConnect::new(tls_config(&config));
        let pool = pool(&config, &tls, connections)?;
        let mut first = pool.get().await.map_err(|error| PostgresError::Unreachable(root(&error)))?;
        schema::migrate(&mut first).await?;
        drop(first);
        let (submissions, waiting) = mpsc::channel(QUEUE_MAX);
        let watcher: Arc<OnceLock<Watcher>> = Arc::default();
        // A connection belongs to the runtime on which it was made: this one is the submitter's alone.
        let submitter = Submitter { pool: self::pool(&config, &tls, 1)?, waiting, watcher: watcher.clone() };
        let listener = Listener::new(config, tls);
        Ok((Self(Postgres { pool, submissions, listener, watcher, tasks: JoinSet::new() }), submitter))
    }

    /// Which server this is, and which of its lives: differs after a restore or a failover. None where it may not be
    /// asked.
    pub async fn origin(&self) -> Option<String> {
        let client = self.0.pool.get().await.ok()?;
        let sql = "SELECT system_identifier::text || '/' || timeline_id::text
                   FROM pg_control_system(), pg_control_checkpoint()";
        client.query_one(sql, &[]).await.ok()?.try_get(0).ok()
    }
}

fn pool(config: &Config, tls: &MakeRustlsConnect, connections: usize) -> Result<Pool, PostgresError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycling))
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CALL_MAX))
        .create_timeout(Some(CONNECT_MAX))
        .build()
        .map_err(|error| PostgresError::Unreachable(error.to_string()))
}

/// Whether TLS is used is said in the address; then the server's certificate must be one that this machine trusts.
fn tls_config(config: &Config) -> rustls::ClientConfig {
    let trust = if config.get_ssl_mode() == SslMode::Disable { None } else { system_trust() };
    trust.map_or_else(trusting_nobody, |trust| (*trust).clone())
}

fn trusting_nobody() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions of TLS")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// The innermost reason: what people can act on.
fn root(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn failed(error: &dyn std::error::Error) -> StoreError {
    StoreError::Failed(root(error))
}

fn tell(watcher: &OnceLock<Watcher>, changes: &[Change]) {
    if let Some(watcher) = watcher.get()
        && !changes.is_empty()
    {
        watcher(changes);
    }
}

/// Carries a verb out in one transaction, and tells the watcher when it is durable.
async fn transact<T>(pool: &Pool, watcher: &OnceLock<Watcher>, deed: Deed<T>) -> Result<T, StoreError> {
    let client = pool.get().await.map_err(|_| StoreError::Unavailable)?;
    let mut lent = Lent { client: Some(client), is_between: false };
    let Some(client) = &lent.client else { return Err(StoreError::Unavailable) };
    let mut session = PostgresSession::begin(client).await?;
    let done = match deed(&mut session).await {
        Ok(result) => Ok((result, session.commit().await?)),
        Err(error) => {
            session.roll_back().await?;
            Err(error)
        }
    };
    lent.is_between = true;
    let (result, changes) = done?;
    tell(watcher, &changes);
    Ok(result)
}

/// A connection that goes back to its pool only between two transactions. Who gives up in the middle of one closes it,
/// and the server takes everything back.
struct Lent {
    client: Option<Client>,
    is_between: bool,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.client.take()
            && !self.is_between
        {
            drop(Client::take(client));
        }
    }
}

impl Postgres {
    async fn read<T>(&self, deed: Deed<T>) -> Result<T, StoreError> {
        let client = self.pool.get().await.map_err(|_| StoreError::Unavailable)?;
        // A verb that only reads is one statement, or does not mind what happens between two.
        deed(&mut PostgresSession::reading(&client)).await
    }

    async fn append(&self, submission: Submission) -> Result<DeploymentObject, StoreError> {
        let (waiting, answer) = Waiting::new(submission);
        self.submissions.try_send(waiting).map_err(|_| StoreError::Unavailable)?;
        answer.await.unwrap_or(Err(StoreError::Unavailable))
    }
}

impl Database for Postgres {
    fn transact<T: Send + 'static>(&self, weight: Weight, deed: Deed<T>) -> Stored<'_, T> {
        Box::pin(async move {
            let call = async {
                match weight {
                    Weight::Read => self.read(deed).await,
                    Weight::Write => transact(&self.pool, &self.watcher, deed).await,
                }
            };
            timeout(CALL_MAX, call).await.unwrap_or(Err(StoreError::Unavailable))
        })
    }

    fn submit(&self, submission: Submission) -> Stored<'_, DeploymentObject> {
        let call = self.append(submission);
        Box::pin(async { timeout(CALL_MAX, call).await.unwrap_or(Err(StoreError::Unavailable)) })
    }

    fn attach(&self, watcher: Watcher) {
        // The first broker keeps it: a store has one.
        let _ = self.watcher.set(watcher);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn heard(&self) -> Stored<'_, ()> {
        Box::pin(async {
            self.listener.heard().await;
            Ok(())
        })
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Postgres")
    }
}
