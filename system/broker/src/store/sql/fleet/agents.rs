//! Creates, updates and deletes agents.

use serde_json::json;
use sindri_model::wire::{Agent, AgentStatus, UpdateAgentRequest};
use sindri_model::{AgentId, GeneratorId};

use super::registrations;
use crate::event_types::EventType;
use crate::store::records::{KeyHolder, KeyRecord, RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::{agent_replacement, matching};
use crate::store::sql::reports::approvals;
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::{as_missing_reference, require_inserted, require_that};
use crate::store::sql::shared::outbox::WebhookEvent;
use crate::store::sql::shared::session::{Session, execute, has_rows};
use crate::store::sql::shared::values::values;
use crate::store::sql::shared::{audit, changes, counter, idempotency, outbox};
use crate::store::sql::tables::{agents, keys};

const RESOURCE_TYPE: &str = "agent";

pub(crate) async fn create(
    session: &mut dyn Session,
    context: WriteContext,
    agent: Agent,
    key: KeyRecord,
    generators: Vec<GeneratorId>,
) -> Result<(), StoreError> {
    let content = || {
        let content = json!({"name": agent.name, "cluster_name": agent.cluster_name, "generators": generators});
        key.add_to_request(content)
    };
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    idempotency::reject_repeated(session, request.as_ref()).await?;
    // Locked before the predecessor is looked for, which another transaction may be deleting.
    counter::next_number(session).await?;
    let predecessor = agent_replacement::find_predecessor(session, &agent.name, &agent.cluster_name).await?;
    let sql = "INSERT INTO agents (id, created_at, updated_at, name, cluster_name, active)
               VALUES (?1, ?2, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    let active = agent.status == AgentStatus::Active;
    let row = values![agent.id, context.time, &agent.name, &agent.cluster_name, active];
    require_inserted(
        execute(session, sql, row).await?,
        RecordKind::Agent,
        agents::describe(&agent.name, &agent.cluster_name),
    )?;
    keys::create(session, &context, &key, KeyHolder::Agent(agent.id)).await?;
    let mut details = json!({"name": agent.name, "cluster_name": agent.cluster_name});
    if let Some(predecessor) = predecessor {
        let stacks = agent_replacement::take_over(session, &context, predecessor, &agent).await?;
        details["took_over"] = json!({"agent_id": predecessor, "stacks": stacks});
    }
    audit::record(session, &context, "agent.created", RESOURCE_TYPE, Some(agent.id.to_string()), Some(details)).await?;
    idempotency::record(session, request.as_ref(), agent.id).await?;
    for generator in generators {
        registrations::add(session, &context, generator, agent.id).await.map_err(as_missing_reference)?;
    }
    Ok(())
}

pub(crate) async fn update(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    changes: UpdateAgentRequest,
) -> Result<Agent, StoreError> {
    // Before anything else: no other change comes between what is read and what is written back.
    let version = counter::next_number(session).await?;
    let current = agents::get(session, agent).await?;
    let name = changes.name.as_ref().unwrap_or(&current.name);
    let cluster_name = changes.cluster_name.as_ref().unwrap_or(&current.cluster_name);
    let sql = "SELECT 1 FROM agents WHERE name = ?1 AND cluster_name = ?2 AND id <> ?3 AND deleted_at IS NULL";
    if has_rows(session, sql, values![name, cluster_name, agent]).await? {
        return Err(StoreError::AlreadyExists { kind: RecordKind::Agent, name: agents::describe(name, cluster_name) });
    }
    let status = changes.status.unwrap_or(current.status);
    let active = status == AgentStatus::Active;
    let sql = "UPDATE agents SET name = ?1, cluster_name = ?2, active = ?3, updated_at = ?4 WHERE id = ?5";
    execute(session, sql, values![name, cluster_name, active, context.time, agent]).await?;
    if status != current.status {
        set_deactivated(session, agent, !active).await?;
        // Ends a waiting poll, like a change of the target state.
        changes::record_target_change_at(session, agent, version).await?;
    }
    let details = json!(changes);
    audit::record(session, &context, "agent.updated", RESOURCE_TYPE, Some(agent.to_string()), Some(details)).await?;
    agents::get(session, agent).await
}

/// Records whether an agent was deactivated. The first activation of an agent changes nothing that its key allows.
async fn set_deactivated(session: &mut dyn Session, agent: AgentId, is_deactivated: bool) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET is_deactivated = ?1 WHERE id = ?2 AND is_deactivated <> ?1";
    match execute(session, sql, values![is_deactivated, agent]).await? {
        0 => Ok(()),
        _ => changes::record_key_change(session).await,
    }
}

pub(crate) async fn set_leader(session: &mut dyn Session, agent: AgentId, process: String) -> Result<(), StoreError> {
    if agents::get_leader(session, agent).await?.as_deref() == Some(&process) {
        return Ok(());
    }
    // Before the row is locked: a report that is awaited may itself wait for an update of the row.
    session.await_announced_events().await?;
    let sql = "UPDATE agents SET leader = ?1 WHERE id = ?2 AND deleted_at IS NULL";
    let rows = execute(session, sql, values![&process, agent]).await?;
    require_that(rows > 0, RecordKind::Agent, agent)
}

/// Deletes the key, targets, labels and registrations too. The stacks that the agent received and has not removed stay
/// on record.
pub(crate) async fn delete(session: &mut dyn Session, context: WriteContext, agent: AgentId) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    let deleted = agents::get(session, agent).await?;
    keys::delete(session, KeyHolder::Agent(agent)).await?;
    for sql in [
        "DELETE FROM targets WHERE agent_id = ?1",
        "DELETE FROM registrations WHERE agent_id = ?1",
        "DELETE FROM agent_labels WHERE agent_id = ?1",
        "DELETE FROM agent_annotations WHERE agent_id = ?1",
        "DELETE FROM stack_status WHERE agent_id = ?1",
    ] {
        execute(session, sql, values![agent]).await?;
    }
    matching::handle_deleted_agent(session, agent).await?;
    approvals::supersede_of_agent(session, agent).await?;
    let sql = "UPDATE agents SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    execute(session, sql, values![context.time, agent]).await?;
    let details = json!({"name": deleted.name, "cluster_name": deleted.cluster_name});
    audit::record(session, &context, "agent.deleted", RESOURCE_TYPE, Some(agent.to_string()), Some(details.clone()))
        .await?;
    let event =
        WebhookEvent { event_type: EventType::AgentDeregistered, agent: Some(agent), stack: None, data: details };
    outbox::publish(session, &context, event).await
}
