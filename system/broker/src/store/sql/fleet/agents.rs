//! Agents.

use serde_json::json;
use sindri_model::wire::{Agent, AgentStatus, UpdateAgentRequest};
use sindri_model::{AgentId, GeneratorId};

use crate::event_types::EventType;
use crate::store::records::{Heartbeat, KeyHolder, KeyRecord, Noun, Page, Stamp, StoreError};
use crate::store::sql::assignments::agent_replacement as succession;
use crate::store::sql::assignments::matching;
use crate::store::sql::fleet::generators;
use crate::store::sql::reports::approvals;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::idempotency as once;
use crate::store::sql::shared::lookup::{as_reference, found, made};
use crate::store::sql::shared::outbox::{Happening, announce};
use crate::store::sql::shared::session::{Row, Session, all, any, change, one, only, values};
use crate::store::sql::tables::keys;

const WHAT: &str = "agent";

/// The columns that [`read`] reads, of a query that goes on as given.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT agents.id, agents.created_at, agents.updated_at, agents.deleted_at, agents.name,
                    agents.cluster_name, agents.active, agents.last_heartbeat, agents.k8s_reachable,
                    agents.k8s_api_latency_ms, agents.k8s_reported_at ",
            $rest
        )
    };
}
pub(crate) use columns;

pub(crate) async fn create(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: Agent,
    key: KeyRecord,
    generators: Vec<GeneratorId>,
) -> Result<(), StoreError> {
    once::refuse_again(session, &stamp, WHAT).await?;
    let predecessor = succession::predecessor(session, &agent.name, &agent.cluster_name).await?;
    let sql = "INSERT INTO agents (id, created_at, updated_at, name, cluster_name, active)
               VALUES (?1, ?2, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    let active = agent.status == AgentStatus::Active;
    let row = values![agent.id, stamp.at, &agent.name, &agent.cluster_name, active];
    made(change(session, sql, row).await?, Noun::Agent, in_words(&agent.name, &agent.cluster_name))?;
    keys::create(session, &stamp, &key, KeyHolder::Agent(agent.id)).await?;
    let mut details = json!({"name": agent.name, "cluster_name": agent.cluster_name});
    if let Some(predecessor) = predecessor {
        let stacks = succession::take_over(session, &stamp, predecessor, &agent).await?;
        details["took_over"] = json!({"agent_id": predecessor, "stacks": stacks});
    }
    audit::record(session, &stamp, "agent.created", WHAT, Some(agent.id.to_string()), Some(details)).await?;
    once::remember(session, &stamp, WHAT, agent.id).await?;
    for generator in generators {
        generators::register_row(session, &stamp, generator, agent.id).await.map_err(as_reference)?;
    }
    Ok(())
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<Agent>, StoreError> {
    let sql = columns!(
        "FROM agents WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL
          OR (name, cluster_name, id) > (SELECT name, cluster_name, id FROM agents WHERE id = ?1))
        ORDER BY name, cluster_name, id LIMIT ?2"
    );
    all(session, sql, values![page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, agent: AgentId) -> Result<Agent, StoreError> {
    let sql = columns!("FROM agents WHERE id = ?1 AND deleted_at IS NULL");
    found(one(session, sql, values![agent], read).await?, Noun::Agent, agent)
}

/// Whether an agent lives, without reading it.
pub(crate) async fn require(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    let lives = any(session, "SELECT 1 FROM agents WHERE id = ?1 AND deleted_at IS NULL", values![agent]).await?;
    found(lives.then_some(()), Noun::Agent, agent)
}

/// Whether an agent that lives acts.
pub(crate) async fn status_of(session: &mut dyn Session, agent: AgentId) -> Result<AgentStatus, StoreError> {
    let sql = "SELECT active FROM agents WHERE id = ?1 AND deleted_at IS NULL";
    found(one(session, sql, values![agent], only).await?, Noun::Agent, agent)
}

pub(crate) async fn find(session: &mut dyn Session, name: String, cluster_name: String) -> Result<Agent, StoreError> {
    let sql = columns!("FROM agents WHERE name = ?1 AND cluster_name = ?2 AND deleted_at IS NULL");
    let row = one(session, sql, values![&name, &cluster_name], read).await?;
    found(row, Noun::Agent, in_words(&name, &cluster_name))
}

pub(crate) async fn update(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    changes: UpdateAgentRequest,
) -> Result<Agent, StoreError> {
    // A poll that waits is told of another status, as of anything else that is wanted of the agent.
    let version = match changes.status {
        Some(_) => Some(epoch::tick(session).await?),
        None => None,
    };
    let now = get(session, agent).await?;
    let name = changes.name.as_ref().unwrap_or(&now.name);
    let cluster_name = changes.cluster_name.as_ref().unwrap_or(&now.cluster_name);
    let sql = "SELECT 1 FROM agents WHERE name = ?1 AND cluster_name = ?2 AND id <> ?3 AND deleted_at IS NULL";
    if any(session, sql, values![name, cluster_name, agent]).await? {
        return Err(StoreError::Duplicate { noun: Noun::Agent, name: in_words(name, cluster_name) });
    }
    let status = changes.status.unwrap_or(now.status);
    let active = status == AgentStatus::Active;
    let sql = "UPDATE agents SET name = ?1, cluster_name = ?2, active = ?3, updated_at = ?4 WHERE id = ?5";
    change(session, sql, values![name, cluster_name, active, stamp.at, agent]).await?;
    if let Some(version) = version.filter(|_| status != now.status) {
        epoch::desired_set_changed(session, agent, version).await?;
    }
    let details = json!(changes);
    audit::record(session, &stamp, "agent.updated", WHAT, Some(agent.to_string()), Some(details)).await?;
    get(session, agent).await
}

/// Its key, targets, labels and registrations go; what it received and has not removed stays on record.
pub(crate) async fn delete(session: &mut dyn Session, stamp: Stamp, agent: AgentId) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    let gone = get(session, agent).await?;
    keys::delete_of(session, KeyHolder::Agent(agent)).await?;
    for sql in [
        "DELETE FROM targets WHERE agent_id = ?1",
        "DELETE FROM registrations WHERE agent_id = ?1",
        "DELETE FROM agent_labels WHERE agent_id = ?1",
        "DELETE FROM agent_annotations WHERE agent_id = ?1",
        "DELETE FROM stack_status WHERE agent_id = ?1",
    ] {
        change(session, sql, values![agent]).await?;
    }
    matching::agent_was_deleted(session, agent).await?;
    approvals::agent_was_deleted(session, agent).await?;
    let sql = "UPDATE agents SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    change(session, sql, values![stamp.at, agent]).await?;
    let details = json!({"name": gone.name, "cluster_name": gone.cluster_name});
    audit::record(session, &stamp, "agent.deleted", WHAT, Some(agent.to_string()), Some(details.clone())).await?;
    let happening = Happening { event: EventType::AgentDeregistered, agent: Some(agent), stack: None, data: details };
    announce(session, &stamp, happening).await
}

/// A heartbeat that says nothing about the cluster leaves what was last said; an older one changes nothing.
pub(crate) async fn heartbeats(session: &mut dyn Session, beats: Vec<(AgentId, Heartbeat)>) -> Result<(), StoreError> {
    for (agent, beat) in beats {
        let sql = "UPDATE agents SET last_heartbeat = ?1, is_offline = 0
                   WHERE id = ?2 AND (last_heartbeat IS NULL OR last_heartbeat < ?1)";
        change(session, sql, values![beat.at, agent]).await?;
        if beat.report.k8s_reachable.is_some() || beat.report.k8s_api_latency_ms.is_some() {
            let sql = "UPDATE agents SET k8s_reachable = ?1, k8s_api_latency_ms = ?2, k8s_reported_at = ?3
                       WHERE id = ?4 AND (k8s_reported_at IS NULL OR k8s_reported_at < ?3)";
            let row = values![beat.report.k8s_reachable, beat.report.k8s_api_latency_ms, beat.at, agent];
            change(session, sql, row).await?;
        }
    }
    Ok(())
}

fn in_words(name: &str, cluster_name: &str) -> String {
    format!("{name} of cluster {cluster_name}")
}

pub(crate) fn read(row: &mut Row) -> Result<Agent, StoreError> {
    Ok(Agent {
        id: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        deleted_at: row.take()?,
        name: row.take()?,
        cluster_name: row.take()?,
        status: row.take()?,
        last_heartbeat: row.take()?,
        k8s_reachable: row.take()?,
        k8s_api_latency_ms: row.take()?,
        k8s_reported_at: row.take()?,
    })
}
