//! Temporary databases on a PostgreSQL server, and calls to them.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::server::Bench;

/// Timeout of database calls.
const CALL_MAX: Duration = Duration::from_secs(30);

/// Connects to a database.
pub async fn open(url: &str, tasks: &mut JoinSet<()>) -> Result<Client, String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(|error| to_message(&error))?;
    tasks.spawn(async move {
        // The client reports a broken connection itself.
        let _broken = connection.await;
    });
    Ok(client)
}

/// A temporary database on a server. It is dropped with this value.
pub struct Database<'a> {
    bench: &'a Bench,
    server: String,
    name: String,
    /// URL of the database.
    pub url: String,
}

impl<'a> Database<'a> {
    /// Creates a database with this name.
    pub fn create(bench: &'a Bench, server: &str, name: &str) -> Result<Self, String> {
        let name = format!("sindri_bench_{name}_{}", std::process::id());
        let (base, _) = server.rsplit_once('/').ok_or("--postgres-url must end with the name of a database")?;
        let database = Self { bench, server: server.to_owned(), url: format!("{base}/{name}"), name };
        database.execute(&format!("CREATE DATABASE {}", database.name))?;
        Ok(database)
    }

    fn execute(&self, sql: &str) -> Result<(), String> {
        on_runtime(self.bench, async {
            let mut tasks = JoinSet::new();
            let client = open(&self.server, &mut tasks).await?;
            client.batch_execute(sql).await.map_err(|error| to_message(&error))
        })
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // Fails if the server has ended; then there is nothing to drop.
        let _gone = self.execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Runs calls to a database.
pub fn on_runtime<T>(bench: &Bench, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    bench.runtime.block_on(CALL_MAX, work).map_err(|error| format!("PostgreSQL: {error}"))?
}

/// Returns the cause of an error of the database.
pub fn to_message(error: &tokio_postgres::Error) -> String {
    format!("PostgreSQL: {}", sindri_client::root_cause(error))
}
