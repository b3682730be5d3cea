//! Rows of the table `registrations`: the generators whose stacks an agent accepts.

use sindri_model::wire::AgentGeneratorRegistration;
use sindri_model::{AgentId, GeneratorId};

use super::{agents, generators};
use crate::store::records::{Page, StoreError};
use crate::store::sql::shared::session::{Session, fetch_all, has_rows};
use crate::store::sql::shared::values::{Row, values};

pub(crate) async fn is_registered(
    session: &mut dyn Session,
    generator: GeneratorId,
    agent: AgentId,
) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM registrations WHERE generator_id = ?1 AND agent_id = ?2";
    has_rows(session, sql, values![generator, agent]).await
}

pub(crate) async fn list_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentGeneratorRegistration>, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = "SELECT id, agent_id, generator_id, registered_at FROM registrations
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    fetch_all(session, sql, values![agent, page.after, page.limit], read).await
}

pub(crate) async fn list_of_generator(
    session: &mut dyn Session,
    generator: GeneratorId,
    page: Page,
) -> Result<Vec<AgentGeneratorRegistration>, StoreError> {
    generators::get(session, generator).await?;
    let sql = "SELECT id, agent_id, generator_id, registered_at FROM registrations
               WHERE generator_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    fetch_all(session, sql, values![generator, page.after, page.limit], read).await
}

/// Names a registration in an error.
pub(crate) fn describe(generator: GeneratorId, agent: AgentId) -> String {
    format!("of agent {agent} with generator {generator}")
}

fn read(row: &mut Row) -> Result<AgentGeneratorRegistration, StoreError> {
    Ok(AgentGeneratorRegistration {
        id: row.take()?,
        agent_id: row.take()?,
        generator_id: row.take()?,
        registered_at: row.take()?,
    })
}
