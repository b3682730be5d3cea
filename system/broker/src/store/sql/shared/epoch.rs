//! The one counter, the life of the database, and what changed since when.
//!
//! Sequences of revisions and versions of desired sets are numbers of the same counter. Taking one locks the counter
//! until the transaction ends.

use std::collections::BTreeMap;

use sindri_model::{AgentId, Epoch, Sequence};

use crate::store::records::{Change, Era, News, Stamp, StoreError};
use crate::store::sql::shared::audit;
use crate::store::sql::shared::session::{
    Question, Row, Session, all, any, change, change_each, failed, one, only, read_all, row, values,
};

const SECRET_BYTES: usize = 32;
const KEYS: &str = "keys";
const EPOCH: &str = "epoch";

pub(crate) async fn ping(session: &mut dyn Session) -> Result<(), StoreError> {
    any(session, "SELECT 1 FROM meta", &[]).await.map(drop)
}

const TICK: &str = "UPDATE meta SET value = value + ?1 WHERE name = 'tick' RETURNING value";

/// The next number.
pub(crate) async fn tick(session: &mut dyn Session) -> Result<Sequence, StoreError> {
    one(session, TICK, values![1], only).await?.ok_or_else(|| failed("the counter is missing"))
}

/// Asks for the last of the next numbers.
pub(crate) fn ask_ticks(count: i64) -> Question {
    Question::Once(TICK, row![count])
}

pub(crate) fn read_ticks(rows: Vec<Row>) -> Result<Sequence, StoreError> {
    read_all(rows, only)?.pop().ok_or_else(|| failed("the counter is missing"))
}

pub(crate) async fn current(session: &mut dyn Session) -> Result<Epoch, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = 'epoch'";
    one(session, sql, &[], only).await?.map(Epoch).ok_or_else(|| failed("the epoch is missing"))
}

pub(crate) async fn era(session: &mut dyn Session) -> Result<Era, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = 'tick'";
    let latest = one(session, sql, &[], only).await?.ok_or_else(|| failed("the counter is missing"))?;
    Ok(Era { epoch: current(session).await?, latest })
}

/// Every number of the new epoch is higher than any of the old one, also those that the backup never saw.
pub(crate) async fn begin(
    session: &mut dyn Session,
    stamp: Stamp,
    above: Epoch,
    why: String,
) -> Result<Era, StoreError> {
    tick(session).await?;
    if current(session).await? > above {
        // Two agents, or two brokers, noticed the same.
        return era(session).await;
    }
    let epoch = Epoch(above.0 + 1);
    change(session, "UPDATE meta SET value = ?1 WHERE name = 'epoch'", values![epoch.0]).await?;
    change(session, "UPDATE meta SET value = ?1 WHERE name = 'tick'", values![epoch.start()]).await?;
    let latest = note(session, EPOCH, Change::Epoch).await?;
    // Every version is of the new epoch: whatever a broker or an agent remembers is void.
    change(session, "UPDATE versions SET version = ?1", values![latest]).await?;
    let details = serde_json::json!({"epoch": epoch, "why": why});
    audit::record(session, &stamp, "epoch.started", "database", None, Some(details)).await?;
    Ok(Era { epoch, latest })
}

pub(crate) async fn settle_origin(session: &mut dyn Session, origin: String) -> Result<bool, StoreError> {
    let known: Option<String> = one(session, "SELECT value FROM facts WHERE name = 'origin'", &[], only).await?;
    if known.as_ref() == Some(&origin) {
        return Ok(false);
    }
    let sql = "INSERT INTO facts (name, value) VALUES ('origin', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1";
    change(session, sql, values![origin]).await?;
    Ok(known.is_some())
}

pub(crate) async fn secret(session: &mut dyn Session, stamp: Stamp) -> Result<Vec<u8>, StoreError> {
    let fresh: [u8; SECRET_BYTES] = stamp.entropy.bytes();
    let sql = "INSERT INTO secrets (name, value) VALUES ('etag', ?1) ON CONFLICT (name) DO NOTHING";
    change(session, sql, values![fresh.to_vec()]).await?;
    let kept = one(session, "SELECT value FROM secrets WHERE name = 'etag'", &[], only).await?;
    kept.ok_or_else(|| failed("the secret is missing"))
}

/// Which keys there are has changed.
pub(crate) async fn keys_changed(session: &mut dyn Session) -> Result<(), StoreError> {
    note(session, KEYS, Change::Keys).await.map(drop)
}

/// A message waits to be sent. Brokers look by themselves now and then; this only makes it quick.
pub(crate) fn deliveries_changed(session: &mut dyn Session) {
    push(session, Change::Deliveries);
}

/// What is wanted of an agent has changed.
pub(crate) async fn desired_set_changed(
    session: &mut dyn Session,
    agent: AgentId,
    version: Sequence,
) -> Result<(), StoreError> {
    desired_sets_changed(session, BTreeMap::from([(agent, version)])).await
}

/// What is wanted of some agents has changed.
pub(crate) async fn desired_sets_changed(
    session: &mut dyn Session,
    versions: BTreeMap<AgentId, Sequence>,
) -> Result<(), StoreError> {
    // `true`, because SQLite would take ON for that of a join.
    let sql = "WITH batch (agent_id, version) AS ({TEXT, BIGINT})
               INSERT INTO versions (agent_id, version) SELECT agent_id, version FROM batch WHERE true
               ON CONFLICT (agent_id) DO UPDATE SET version = excluded.version";
    change_each(session, sql, versions.iter().map(|(agent, version)| row![*agent, *version]).collect()).await?;
    session.changes().extend(versions.into_iter().map(|(agent, version)| Change::DesiredSet(agent, version)));
    Ok(())
}

/// Something has changed that agents have to look at and that is no part of what is wanted of them: their next poll is
/// answered as if it were.
pub(crate) async fn nudge(session: &mut dyn Session, agents: &[AgentId], version: Sequence) -> Result<(), StoreError> {
    let sql = "WITH batch (agent_id, version) AS ({TEXT, BIGINT})
               INSERT INTO versions (agent_id, version, nudged) SELECT agent_id, version, version FROM batch WHERE true
               ON CONFLICT (agent_id) DO UPDATE SET version = excluded.version, nudged = excluded.nudged";
    change_each(session, sql, agents.iter().map(|agent| row![*agent, version]).collect()).await?;
    session.changes().extend(agents.iter().map(|agent| Change::DesiredSet(*agent, version)));
    Ok(())
}

async fn note(session: &mut dyn Session, subject: &'static str, what: Change) -> Result<Sequence, StoreError> {
    let version = tick(session).await?;
    let sql = "INSERT INTO changes (subject, version) VALUES (?1, ?2)
               ON CONFLICT (subject) DO UPDATE SET version = ?2";
    change(session, sql, values![subject, version]).await?;
    push(session, what);
    Ok(version)
}

fn push(session: &mut dyn Session, what: Change) {
    let changes = session.changes();
    if !changes.contains(&what) {
        changes.push(what);
    }
}

pub(crate) async fn news(session: &mut dyn Session, latest: Sequence) -> Result<News, StoreError> {
    // The counter first: whatever is committed after it was read is found again next time.
    let now = era(session).await?.latest;
    let sql = "SELECT agent_id, version FROM versions WHERE version > ?1 ORDER BY version";
    let mut changes = all(session, sql, values![latest], read_version).await?;
    let subjects = all(session, "SELECT subject FROM changes WHERE version > ?1", values![latest], only).await?;
    changes.extend(subjects.into_iter().filter_map(|subject: String| match subject.as_str() {
        KEYS => Some(Change::Keys),
        EPOCH => Some(Change::Epoch),
        _ => None,
    }));
    Ok(News { latest: now, changes })
}

fn read_version(row: &mut Row) -> Result<Change, StoreError> {
    Ok(Change::DesiredSet(row.take()?, row.take()?))
}
