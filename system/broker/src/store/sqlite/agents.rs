//! Agents.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use sindri_model::AgentId;
use sindri_model::wire::{Agent, AgentGeneratorRegistration, AgentStatus, HeartbeatReport, UpdateAgentRequest};

use super::rows::{all, as_reference, change, found, id, insert, one, time, time_or_none};
use super::{generators, keys};
use crate::store::{KeyHolder, KeyRecord, Noun, StoreError};

pub(super) fn create(
    connection: &Connection,
    agent: &Agent,
    key: &KeyRecord,
    registrations: &[AgentGeneratorRegistration],
) -> Result<(), StoreError> {
    let sql = "INSERT INTO agents (id, created_at, updated_at, name, cluster_name, active) VALUES (?, ?, ?, ?, ?, ?)";
    let (created, active) = (agent.created_at.as_microsecond(), agent.status == AgentStatus::Active);
    let row = params![agent.id.to_string(), created, created, agent.name, agent.cluster_name, active];
    insert(connection, sql, row, Noun::Agent, in_words(&agent.name, &agent.cluster_name))?;
    keys::create(connection, key, KeyHolder::Agent(agent.id), agent.created_at)?;
    for registration in registrations {
        generators::register(connection, registration).map_err(as_reference)?;
    }
    Ok(())
}

pub(super) fn list(connection: &Connection) -> Result<Vec<Agent>, StoreError> {
    all(connection, "SELECT * FROM agents WHERE deleted_at IS NULL ORDER BY name, cluster_name", [], read)
}

pub(super) fn get(connection: &Connection, agent: AgentId) -> Result<Agent, StoreError> {
    let sql = "SELECT * FROM agents WHERE id = ? AND deleted_at IS NULL";
    found(one(connection, sql, [agent.to_string()], read)?, Noun::Agent, agent)
}

pub(super) fn find(connection: &Connection, name: &str, cluster_name: &str) -> Result<Agent, StoreError> {
    let sql = "SELECT * FROM agents WHERE name = ? AND cluster_name = ? AND deleted_at IS NULL";
    found(one(connection, sql, [name, cluster_name], read)?, Noun::Agent, in_words(name, cluster_name))
}

pub(super) fn update(
    connection: &Connection,
    agent: AgentId,
    changes: &UpdateAgentRequest,
    at: Timestamp,
) -> Result<Agent, StoreError> {
    let now = get(connection, agent)?;
    let name = changes.name.as_ref().unwrap_or(&now.name);
    let cluster_name = changes.cluster_name.as_ref().unwrap_or(&now.cluster_name);
    let active = changes.status.unwrap_or(now.status) == AgentStatus::Active;
    let sql = "UPDATE agents SET name = ?, cluster_name = ?, active = ?, updated_at = ? WHERE id = ?";
    let row = params![name, cluster_name, active, at.as_microsecond(), agent.to_string()];
    insert(connection, sql, row, Noun::Agent, in_words(name, cluster_name))?;
    get(connection, agent)
}

pub(super) fn delete(connection: &Connection, agent: AgentId, at: Timestamp) -> Result<(), StoreError> {
    get(connection, agent)?;
    keys::delete_of_agent(connection, agent)?;
    change(connection, "DELETE FROM targets WHERE agent_id = ?", [agent.to_string()])?;
    change(connection, "DELETE FROM registrations WHERE agent_id = ?", [agent.to_string()])?;
    let sql = "UPDATE agents SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    change(connection, sql, params![at.as_microsecond(), agent.to_string()])?;
    Ok(())
}

/// A heartbeat that says nothing about the cluster leaves what was last said.
pub(super) fn heartbeat(
    connection: &Connection,
    agent: AgentId,
    report: &HeartbeatReport,
    at: Timestamp,
) -> Result<(), StoreError> {
    get(connection, agent)?;
    let at = at.as_microsecond();
    change(connection, "UPDATE agents SET last_heartbeat = ? WHERE id = ?", params![at, agent.to_string()])?;
    if report.k8s_reachable.is_some() || report.k8s_api_latency_ms.is_some() {
        let sql = "UPDATE agents SET k8s_reachable = ?, k8s_api_latency_ms = ?, k8s_reported_at = ? WHERE id = ?";
        change(connection, sql, params![report.k8s_reachable, report.k8s_api_latency_ms, at, agent.to_string()])?;
    }
    Ok(())
}

fn in_words(name: &str, cluster_name: &str) -> String {
    format!("{name} of cluster {cluster_name}")
}

fn read(row: &Row<'_>) -> rusqlite::Result<Agent> {
    let status = if row.get("active")? { AgentStatus::Active } else { AgentStatus::Inactive };
    Ok(Agent {
        id: id(row, "id")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        deleted_at: time_or_none(row, "deleted_at")?,
        name: row.get("name")?,
        cluster_name: row.get("cluster_name")?,
        status,
        last_heartbeat: time_or_none(row, "last_heartbeat")?,
        k8s_reachable: row.get("k8s_reachable")?,
        k8s_api_latency_ms: row.get("k8s_api_latency_ms")?,
        k8s_reported_at: time_or_none(row, "k8s_reported_at")?,
    })
}
