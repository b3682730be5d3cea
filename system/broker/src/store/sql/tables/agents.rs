//! Rows of the table `agents`.

use std::collections::BTreeMap;

use sindri_model::AgentId;
use sindri_model::wire::Agent;

use crate::store::records::{Page, RecordKind, StoreError};
use crate::store::sql::shared::lookup::{require, require_that};
use crate::store::sql::shared::session::{PipelinedQuery, Session, fetch_all, fetch_one, has_rows, read_all};
use crate::store::sql::shared::values::{Row, row, values};

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
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

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<Agent>, StoreError> {
    let sql = columns!(
        "FROM agents WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL
          OR (name, cluster_name, id) > (SELECT name, cluster_name, id FROM agents WHERE id = ?1))
        ORDER BY name, cluster_name, id LIMIT ?2"
    );
    fetch_all(session, sql, values![page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, agent: AgentId) -> Result<Agent, StoreError> {
    let sql = columns!("FROM agents WHERE id = ?1 AND deleted_at IS NULL");
    require(fetch_one(session, sql, values![agent], read).await?, RecordKind::Agent, agent)
}

/// Checks that an agent exists and is not deleted, without reading it.
pub(crate) async fn check_exists(session: &mut dyn Session, agent: AgentId) -> Result<(), StoreError> {
    let exists = has_rows(session, "SELECT 1 FROM agents WHERE id = ?1 AND deleted_at IS NULL", values![agent]).await?;
    require_that(exists, RecordKind::Agent, agent)
}

/// Checks that an agent exists and is not deleted, and that no other process of it has announced itself as the leader than the
/// one that reports.
pub(crate) async fn check_reporter(
    session: &mut dyn Session,
    agent: AgentId,
    process: Option<&str>,
) -> Result<(), StoreError> {
    let rows = session.query_pipelined(vec![query_leaders([agent])]).await?;
    read_leaders(rows.into_iter().flatten().collect())?.check(agent, process)
}

/// Returns the process of an agent that has announced itself as the leader.
pub(crate) async fn get_leader(session: &mut dyn Session, agent: AgentId) -> Result<Option<String>, StoreError> {
    let rows = session.query_pipelined(vec![query_leaders([agent])]).await?;
    read_leaders(rows.into_iter().flatten().collect())?.get(agent).cloned()
}

/// Processes of agents that have announced themselves as the leaders; agents that do not exist have no entry.
pub(crate) struct Leaders(BTreeMap<AgentId, Option<String>>);

/// Query for the leaders of agents; [`read_leaders`] reads its rows.
pub(crate) fn query_leaders(agents: impl IntoIterator<Item = AgentId>) -> PipelinedQuery {
    let sql = "WITH batch (agent_id) AS ({TEXT})
               SELECT agents.id, leader FROM batch JOIN agents ON agents.id = batch.agent_id AND deleted_at IS NULL";
    PipelinedQuery::Batch(sql, agents.into_iter().map(|agent| row![agent]).collect())
}

pub(crate) fn read_leaders(rows: Vec<Row>) -> Result<Leaders, StoreError> {
    let leaders = read_all(rows, |row| Ok((row.take()?, row.take()?)))?;
    Ok(Leaders(leaders.into_iter().collect()))
}

impl Leaders {
    fn get(&self, agent: AgentId) -> Result<&Option<String>, StoreError> {
        require(self.0.get(&agent), RecordKind::Agent, agent)
    }

    /// Checks a report as [`check_reporter`] does.
    pub(crate) fn check(&self, agent: AgentId, process: Option<&str>) -> Result<(), StoreError> {
        match (self.get(agent)?, process) {
            (Some(leader), Some(process)) if leader != process => Err(StoreError::OtherLeader(leader.clone())),
            _ => Ok(()),
        }
    }
}

pub(crate) async fn find(session: &mut dyn Session, name: String, cluster_name: String) -> Result<Agent, StoreError> {
    let sql = columns!("FROM agents WHERE name = ?1 AND cluster_name = ?2 AND deleted_at IS NULL");
    let row = fetch_one(session, sql, values![&name, &cluster_name], read).await?;
    require(row, RecordKind::Agent, describe(&name, &cluster_name))
}

/// Names an agent in an error.
pub(crate) fn describe(name: &str, cluster_name: &str) -> String {
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
