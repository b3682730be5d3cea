//! Registers agents with generators.

use serde_json::json;
use sindri_model::wire::AgentGeneratorRegistration;
use sindri_model::{AgentId, GeneratorId, LinkId};

use crate::event_types::EventType;
use crate::store::records::{RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::matching;
use crate::store::sql::shared::lookup::{require_inserted, require_that};
use crate::store::sql::shared::outbox::WebhookEvent;
use crate::store::sql::shared::session::{Session, execute};
use crate::store::sql::shared::values::values;
use crate::store::sql::shared::{audit, counter, outbox};
use crate::store::sql::tables::{agents, generators, registrations};

pub(crate) async fn register(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<AgentGeneratorRegistration, StoreError> {
    counter::next_number(session).await?;
    agents::check_exists(session, agent).await?;
    let registration = add(session, &context, generator, agent).await?;
    matching::update_agent(session, &context, agent).await?;
    Ok(registration)
}

/// Adds a registration without updating assignments: a new agent has no labels that could match.
pub(crate) async fn add(
    session: &mut dyn Session,
    context: &WriteContext,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<AgentGeneratorRegistration, StoreError> {
    generators::get(session, generator).await?;
    let id = LinkId::generate(&context.entropy);
    let sql = "INSERT INTO registrations (id, agent_id, generator_id, registered_at) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let rows = execute(session, sql, values![id, agent, generator, context.time]).await?;
    require_inserted(rows, RecordKind::Registration, registrations::describe(generator, agent))?;
    let data = json!({"agent_id": agent, "generator_id": generator});
    let resource = Some(agent.to_string());
    audit::record(session, context, "agent.registered", "agent", resource, Some(data.clone())).await?;
    let event = WebhookEvent { event_type: EventType::AgentRegistered, agent: Some(agent), stack: None, data };
    outbox::publish(session, context, event).await?;
    Ok(AgentGeneratorRegistration { id, agent_id: agent, generator_id: generator, registered_at: context.time })
}

pub(crate) async fn unregister(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    generators::get(session, generator).await?;
    let sql = "DELETE FROM registrations WHERE generator_id = ?1 AND agent_id = ?2";
    let was_removed = execute(session, sql, values![generator, agent]).await? > 0;
    require_that(was_removed, RecordKind::Registration, registrations::describe(generator, agent))?;
    matching::update_agent(session, &context, agent).await?;
    let data = json!({"agent_id": agent, "generator_id": generator});
    let resource = Some(agent.to_string());
    audit::record(session, &context, "agent.deregistered", "agent", resource, Some(data.clone())).await?;
    let event = WebhookEvent { event_type: EventType::AgentDeregistered, agent: Some(agent), stack: None, data };
    outbox::publish(session, &context, event).await
}
