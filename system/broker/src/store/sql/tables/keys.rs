//! Rows of the table `keys`: digests only, found by their short tokens.

use sindri_model::wire::PakSummary;
use sindri_model::{AgentId, GeneratorId, PakDigest, PakId};

use crate::store::records::{KeyHolder, KeyRecord, Page, StoreError, StoredKey, WriteContext};
use crate::store::sql::shared::changes;
use crate::store::sql::shared::session::{Session, execute, fetch_all, fetch_one, has_rows, single_column};
use crate::store::sql::shared::values::{Row, values};

pub(crate) async fn has_admin(session: &mut dyn Session) -> Result<bool, StoreError> {
    has_rows(session, "SELECT 1 FROM keys WHERE agent_id IS NULL AND generator_id IS NULL", &[]).await
}

/// Inserts the key of a holder.
pub(crate) async fn create(
    session: &mut dyn Session,
    context: &WriteContext,
    key: &KeyRecord,
    holder: KeyHolder,
) -> Result<(), StoreError> {
    let (agent, generator) = holder_columns(holder);
    let sql = "INSERT INTO keys (id, short, digest, agent_id, generator_id, created_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = values![PakId::generate(&context.entropy), &key.short, &key.digest.0, agent, generator, context.time];
    execute(session, sql, row).await?;
    Ok(())
}

/// Deletes the keys of a holder.
pub(crate) async fn delete(session: &mut dyn Session, holder: KeyHolder) -> Result<(), StoreError> {
    match holder_columns(holder) {
        (None, None) => {
            execute(session, "DELETE FROM keys WHERE agent_id IS NULL AND generator_id IS NULL", &[]).await?
        }
        (agent, generator) => {
            let sql = "DELETE FROM keys WHERE agent_id = ?1 OR generator_id = ?2";
            execute(session, sql, values![agent, generator]).await?
        }
    };
    changes::record_key_change(session).await
}

/// Returns the values of the columns `agent_id` and `generator_id`.
fn holder_columns(holder: KeyHolder) -> (Option<AgentId>, Option<GeneratorId>) {
    match holder {
        KeyHolder::Admin => (None, None),
        KeyHolder::Agent(agent) => (Some(agent), None),
        KeyHolder::Generator(generator) => (None, Some(generator)),
    }
}

pub(crate) async fn find_by_short(session: &mut dyn Session, short: String) -> Result<Vec<StoredKey>, StoreError> {
    let sql = "SELECT digest, agent_id, generator_id, coalesce(generators.is_active, 1) FROM keys
                 LEFT JOIN generators ON generators.id = keys.generator_id WHERE short = ?1";
    fetch_all(session, sql, values![short], read).await
}

/// Lists the digests of the keys of a holder.
pub(crate) async fn list_of_holder(session: &mut dyn Session, holder: KeyHolder) -> Result<Vec<PakDigest>, StoreError> {
    let digests = match holder_columns(holder) {
        (None, None) => {
            let sql = "SELECT digest FROM keys WHERE agent_id IS NULL AND generator_id IS NULL ORDER BY id";
            fetch_all(session, sql, &[], single_column).await?
        }
        (agent, generator) => {
            let sql = "SELECT digest FROM keys WHERE agent_id = ?1 OR generator_id = ?2 ORDER BY id";
            fetch_all(session, sql, values![agent, generator], single_column).await?
        }
    };
    Ok(digests.into_iter().map(PakDigest).collect())
}

pub(crate) async fn list_shorts(session: &mut dyn Session, limit: i64) -> Result<Vec<String>, StoreError> {
    fetch_all(session, "SELECT short FROM keys LIMIT ?1", values![limit], single_column).await
}

/// Returns the holder of a key.
pub(crate) async fn find_holder(session: &mut dyn Session, key: PakId) -> Result<Option<KeyHolder>, StoreError> {
    let sql = "SELECT agent_id, generator_id FROM keys WHERE id = ?1";
    fetch_one(session, sql, values![key], read_holder).await
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<PakSummary>, StoreError> {
    let sql = "SELECT keys.id, coalesce(agents.name, generators.name, 'admin') FROM keys
                 LEFT JOIN agents ON agents.id = keys.agent_id LEFT JOIN generators ON generators.id = keys.generator_id
               WHERE CAST(?1 AS TEXT) IS NULL OR keys.id > ?1 ORDER BY keys.id LIMIT ?2";
    fetch_all(session, sql, values![page.after, page.limit], read_summary).await
}

fn read(row: &mut Row) -> Result<StoredKey, StoreError> {
    Ok(StoredKey { digest: PakDigest(row.take()?), holder: read_holder(row)?, is_active: row.take()? })
}

fn read_holder(row: &mut Row) -> Result<KeyHolder, StoreError> {
    Ok(match (row.take()?, row.take()?) {
        (Some(agent), _) => KeyHolder::Agent(agent),
        (None, Some(generator)) => KeyHolder::Generator(generator),
        (None, None) => KeyHolder::Admin,
    })
}

fn read_summary(row: &mut Row) -> Result<PakSummary, StoreError> {
    Ok(PakSummary { id: row.take()?, name: row.take()? })
}
