//! Keys: only digests, found by short token.

use sindri_model::wire::{Agent, Generator, PakSummary};
use sindri_model::{AgentId, GeneratorId, PakDigest, PakId};

use crate::store::records::{KeyHolder, KeyRecord, Page, Stamp, StoreError};
use crate::store::sql::fleet::agents;
use crate::store::sql::fleet::generators;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::session::{Row, Session, all, any, change, one, values};

pub(crate) async fn has_admin(session: &mut dyn Session) -> Result<bool, StoreError> {
    any(session, "SELECT 1 FROM keys WHERE agent_id IS NULL AND generator_id IS NULL", &[]).await
}

pub(crate) async fn create_admin(session: &mut dyn Session, stamp: Stamp, key: KeyRecord) -> Result<bool, StoreError> {
    // Two brokers may start at once on an empty database: the second waits here, and then sees the key.
    epoch::tick(session).await?;
    if has_admin(session).await? {
        return Ok(false);
    }
    create(session, &stamp, &key, KeyHolder::Admin).await?;
    audit::record(session, &stamp, "pak.created", "pak", None, None).await?;
    Ok(true)
}

pub(crate) async fn create(
    session: &mut dyn Session,
    stamp: &Stamp,
    key: &KeyRecord,
    holder: KeyHolder,
) -> Result<(), StoreError> {
    let (agent, generator) = columns(holder);
    let sql = "INSERT INTO keys (id, short, digest, agent_id, generator_id, created_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = values![PakId::mint(&stamp.entropy), &key.short, &key.digest.0, agent, generator, stamp.at];
    change(session, sql, row).await?;
    Ok(())
}

pub(crate) async fn delete_of(session: &mut dyn Session, holder: KeyHolder) -> Result<(), StoreError> {
    let (agent, generator) = columns(holder);
    let sql = "DELETE FROM keys WHERE agent_id = ?1 OR generator_id = ?2";
    change(session, sql, values![agent, generator]).await?;
    epoch::keys_changed(session).await
}

fn columns(holder: KeyHolder) -> (Option<AgentId>, Option<GeneratorId>) {
    match holder {
        KeyHolder::Admin => (None, None),
        KeyHolder::Agent(agent) => (Some(agent), None),
        KeyHolder::Generator(generator) => (None, Some(generator)),
    }
}

pub(crate) async fn rotate_of_agent(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    key: KeyRecord,
) -> Result<Agent, StoreError> {
    let found = agents::get(session, agent).await?;
    rotate(session, &stamp, KeyHolder::Agent(agent), key, ("agent", agent.to_string())).await?;
    Ok(found)
}

pub(crate) async fn rotate_of_generator(
    session: &mut dyn Session,
    stamp: Stamp,
    generator: GeneratorId,
    key: KeyRecord,
) -> Result<Generator, StoreError> {
    let found = generators::get(session, generator).await?;
    rotate(session, &stamp, KeyHolder::Generator(generator), key, ("generator", generator.to_string())).await?;
    Ok(found)
}

async fn rotate(
    session: &mut dyn Session,
    stamp: &Stamp,
    holder: KeyHolder,
    key: KeyRecord,
    (kind, id): (&str, String),
) -> Result<(), StoreError> {
    delete_of(session, holder).await?;
    create(session, stamp, &key, holder).await?;
    audit::record(session, stamp, "pak.rotated", kind, Some(id), None).await
}

pub(crate) async fn by_short(
    session: &mut dyn Session,
    short: String,
) -> Result<Vec<(PakDigest, KeyHolder)>, StoreError> {
    let sql = "SELECT digest, agent_id, generator_id FROM keys WHERE short = ?1";
    all(session, sql, values![short], read).await
}

/// Whose key has this id.
pub(crate) async fn holder_of(session: &mut dyn Session, key: PakId) -> Result<Option<KeyHolder>, StoreError> {
    let sql = "SELECT digest, agent_id, generator_id FROM keys WHERE id = ?1";
    Ok(one(session, sql, values![key], read).await?.map(|(_, holder)| holder))
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<PakSummary>, StoreError> {
    let sql = "SELECT keys.id, coalesce(agents.name, generators.name, 'admin') FROM keys
                 LEFT JOIN agents ON agents.id = keys.agent_id LEFT JOIN generators ON generators.id = keys.generator_id
               WHERE CAST(?1 AS TEXT) IS NULL OR keys.id > ?1 ORDER BY keys.id LIMIT ?2";
    all(session, sql, values![page.after, page.limit], read_summary).await
}

fn read(row: &mut Row) -> Result<(PakDigest, KeyHolder), StoreError> {
    let (digest, agent, generator) = (row.take()?, row.take()?, row.take()?);
    let holder = match (agent, generator) {
        (Some(agent), _) => KeyHolder::Agent(agent),
        (None, Some(generator)) => KeyHolder::Generator(generator),
        (None, None) => KeyHolder::Admin,
    };
    Ok((PakDigest(digest), holder))
}

fn read_summary(row: &mut Row) -> Result<PakSummary, StoreError> {
    Ok(PakSummary { id: row.take()?, name: row.take()? })
}
