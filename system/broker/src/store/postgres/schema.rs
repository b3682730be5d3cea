//! Migrations of the schema. The SQL of a released migration never changes.

use deadpool_postgres::Client;

use super::error::{PostgresError, root_cause};

/// Migrations in their order. The table `sindri_schema` has the number of migrations that a database has.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
    include_str!("schema_12.sql"),
    include_str!("schema_13.sql"),
    include_str!("schema_14.sql"),
    include_str!("schema_15.sql"),
    include_str!("schema_16.sql"),
];
/// Key of the advisory lock with which one broker migrates while others wait: an arbitrary number.
const LOCK: i64 = 0x51_4d_52_49;

/// Migrates the database to the newest schema, all in one transaction.
pub(super) async fn migrate(client: &mut Client) -> Result<(), PostgresError> {
    let failed = |error: tokio_postgres::Error| PostgresError::Migration(root_cause(&error));
    let known = MIGRATIONS.len();
    let transaction = client.transaction().await.map_err(failed)?;
    // A migration, and another broker's that is awaited here, may take longer than the calls of a running broker.
    transaction.batch_execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let table = "CREATE TABLE IF NOT EXISTS sindri_schema (version BIGINT NOT NULL)";
    transaction.batch_execute(table).await.map_err(failed)?;
    let version = transaction.query_opt("SELECT version FROM sindri_schema", &[]).await.map_err(failed)?;
    let found: i64 = version.map_or(Ok(0), |row| row.try_get(0)).map_err(failed)?;
    let done = usize::try_from(found).unwrap_or_default();
    if done > known {
        return Err(PostgresError::Newer { found, known });
    }
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.batch_execute(migration).await.map_err(failed)?;
    }
    if done < known {
        let newest = i64::try_from(known).unwrap_or(i64::MAX);
        transaction.execute("DELETE FROM sindri_schema", &[]).await.map_err(failed)?;
        transaction.execute("INSERT INTO sindri_schema (version) VALUES ($1)", &[&newest]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
