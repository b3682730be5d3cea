//! Rows of the table `keys`: digests only, found by their short tokens.
//!
//! A holder has one current key, and after a rotation with a grace period also the key that it replaced: the row with a
//! `replaced_at`.

use jiff::Timestamp;
use sindri_model::wire::PakSummary;
use sindri_model::{AdminId, AgentId, GeneratorId, PakDigest, PakId};

use crate::store::records::{KeyAccess, KeyHolder, KeyRecord, Page, StoreError, StoredKey, WriteContext};
use crate::store::sql::shared::changes;
use crate::store::sql::shared::session::{Session, execute, failed, fetch_all, fetch_one, has_rows, single_column};
use crate::store::sql::shared::values::{Row, Value, values};

/// Returns true if an administrator with all permissions has a key.
pub(crate) async fn has_admin(session: &mut dyn Session) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM keys JOIN admins ON admins.id = keys.admin_id WHERE is_read_only = 0 LIMIT 1";
    has_rows(session, sql, &[]).await
}

/// Inserts the key of a holder.
pub(crate) async fn create(
    session: &mut dyn Session,
    context: &WriteContext,
    key: &KeyRecord,
    holder: KeyHolder,
) -> Result<(), StoreError> {
    let [admin, agent, generator] = holder_columns(holder);
    let sql = "INSERT INTO keys (id, short, digest, admin_id, agent_id, generator_id, created_at, expires_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let id = PakId::generate(&context.entropy);
    let row = values![id, &key.short, &key.digest.0, admin, agent, generator, context.time, key.expires_at];
    execute(session, sql, row).await?;
    Ok(())
}

/// Deletes the keys of a holder.
pub(crate) async fn delete(session: &mut dyn Session, holder: KeyHolder) -> Result<(), StoreError> {
    let sql = "DELETE FROM keys WHERE admin_id = ?1 OR agent_id = ?2 OR generator_id = ?3";
    execute(session, sql, &holder_columns(holder)).await?;
    changes::record_key_change(session).await
}

/// Lets the current key of a holder end at a time, and deletes the one that it replaced.
pub(crate) async fn supersede(
    session: &mut dyn Session,
    holder: KeyHolder,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), StoreError> {
    let [admin, agent, generator] = holder_columns(holder);
    let sql = "DELETE FROM keys WHERE (admin_id = ?1 OR agent_id = ?2 OR generator_id = ?3)
                 AND replaced_at IS NOT NULL";
    execute(session, sql, &[admin.clone(), agent.clone(), generator.clone()]).await?;
    let sql = "UPDATE keys SET replaced_at = ?4, expires_at = CASE WHEN expires_at < ?5 THEN expires_at ELSE ?5 END
               WHERE admin_id = ?1 OR agent_id = ?2 OR generator_id = ?3";
    execute(session, sql, values![admin, agent, generator, now, until]).await?;
    changes::record_key_change(session).await
}

/// Returns the values of the columns `admin_id`, `agent_id` and `generator_id`.
fn holder_columns(holder: KeyHolder) -> [Value; 3] {
    match holder {
        KeyHolder::Admin(admin) => [admin.into(), Value::Null, Value::Null],
        KeyHolder::Agent(agent) => [Value::Null, agent.into(), Value::Null],
        KeyHolder::Generator(generator) => [Value::Null, Value::Null, generator.into()],
    }
}

pub(crate) async fn find_by_short(session: &mut dyn Session, short: String) -> Result<Vec<StoredKey>, StoreError> {
    let sql = "SELECT digest, admin_id, agent_id, keys.generator_id, coalesce(admins.is_read_only, 0),
                 coalesce(1 - generators.is_active, agents.is_deactivated * (1 - agents.active), 0), expires_at
               FROM keys LEFT JOIN admins ON admins.id = keys.admin_id LEFT JOIN agents ON agents.id = keys.agent_id
                 LEFT JOIN generators ON generators.id = keys.generator_id WHERE short = ?1";
    fetch_all(session, sql, values![short], read).await
}

/// Lists the digests of the current keys of a holder.
pub(crate) async fn list_of_holder(session: &mut dyn Session, holder: KeyHolder) -> Result<Vec<PakDigest>, StoreError> {
    let sql = "SELECT digest FROM keys WHERE (admin_id = ?1 OR agent_id = ?2 OR generator_id = ?3)
                 AND replaced_at IS NULL ORDER BY id";
    let digests = fetch_all(session, sql, &holder_columns(holder), single_column).await?;
    Ok(digests.into_iter().map(PakDigest).collect())
}

pub(crate) async fn list_shorts(session: &mut dyn Session, limit: i64) -> Result<Vec<String>, StoreError> {
    fetch_all(session, "SELECT short FROM keys LIMIT ?1", values![limit], single_column).await
}

/// Returns the holder of a key.
pub(crate) async fn find_holder(session: &mut dyn Session, key: PakId) -> Result<Option<KeyHolder>, StoreError> {
    let sql = "SELECT admin_id, agent_id, generator_id FROM keys WHERE id = ?1";
    fetch_one(session, sql, values![key], read_holder).await
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<PakSummary>, StoreError> {
    let sql = "SELECT keys.id, coalesce(admins.name, agents.name, generators.name, '') FROM keys
                 LEFT JOIN admins ON admins.id = keys.admin_id LEFT JOIN agents ON agents.id = keys.agent_id
                 LEFT JOIN generators ON generators.id = keys.generator_id
               WHERE CAST(?1 AS TEXT) IS NULL OR keys.id > ?1 ORDER BY keys.id LIMIT ?2";
    fetch_all(session, sql, values![page.after, page.limit], read_summary).await
}

fn read(row: &mut Row) -> Result<StoredKey, StoreError> {
    let (digest, holder) = (PakDigest(row.take()?), read_holder(row)?);
    let access = match (row.take()?, row.take()?) {
        (true, _) => KeyAccess::ReadOnly,
        (false, true) => KeyAccess::Deactivated,
        (false, false) => KeyAccess::Full,
    };
    Ok(StoredKey { digest, holder, access, expires_at: row.take()? })
}

fn read_holder(row: &mut Row) -> Result<KeyHolder, StoreError> {
    let columns: (Option<AdminId>, Option<AgentId>, Option<GeneratorId>) = (row.take()?, row.take()?, row.take()?);
    match columns {
        (Some(admin), _, _) => Ok(KeyHolder::Admin(admin)),
        (None, Some(agent), _) => Ok(KeyHolder::Agent(agent)),
        (None, None, Some(generator)) => Ok(KeyHolder::Generator(generator)),
        (None, None, None) => Err(failed("a key has no holder")),
    }
}

fn read_summary(row: &mut Row) -> Result<PakSummary, StoreError> {
    Ok(PakSummary { id: row.take()?, name: row.take()? })
}
