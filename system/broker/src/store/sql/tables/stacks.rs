//! Rows of the table `stacks`.

use sindri_model::wire::Stack;
use sindri_model::{AgentId, GeneratorId, StackId};

use super::{agents, keys};
use crate::store::records::{KeyHolder, ListScope, Page, RecordKind, StoreError};
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, fetch_all, fetch_one};
use crate::store::sql::shared::values::{Row, values};

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
macro_rules! columns {
    ($rest:expr) => {
        concat!(
            "SELECT stacks.id, stacks.created_at, stacks.updated_at, stacks.deleted_at, stacks.name,
                    stacks.description, stacks.generator_id ",
            $rest
        )
    };
}

/// A query of stacks by name, up to the size in the fourth parameter; the argument selects the candidates.
macro_rules! sized {
    ($candidates:literal) => {
        columns!(concat!(
            "FROM stacks WHERE id IN (
               SELECT id FROM (
                 SELECT id, sum(bytes) OVER (ORDER BY name, id) - bytes AS bytes_before FROM (
                   SELECT stacks.id, name, coalesce(octet_length(description), 0) AS bytes ",
            $candidates,
            " AND (CAST(?2 AS TEXT) IS NULL OR (name, stacks.id) > (SELECT name, id FROM stacks WHERE id = ?2))
                   ORDER BY name, stacks.id LIMIT ?3) AS candidates) AS sized
               WHERE bytes_before < ?4)
             ORDER BY name, id"
        ))
    };
}

pub(crate) async fn list(session: &mut dyn Session, scope: ListScope, page: Page) -> Result<Vec<Stack>, StoreError> {
    let owner = match scope {
        ListScope::All => None,
        ListScope::Generator(generator) => Some(generator),
        ListScope::Key(key) => match keys::find_holder(session, key).await? {
            Some(KeyHolder::Generator(generator)) => Some(generator),
            Some(KeyHolder::Admin(_)) => None,
            Some(KeyHolder::Agent(agent)) => return list_of_agent(session, agent, page).await,
            None => return Ok(Vec::new()),
        },
    };
    list_of_generator(session, owner, page).await
}

async fn list_of_generator(
    session: &mut dyn Session,
    owner: Option<GeneratorId>,
    page: Page,
) -> Result<Vec<Stack>, StoreError> {
    let sql = sized!("FROM stacks WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL OR generator_id = ?1)");
    fetch_all(session, sql, values![owner, page.after, page.limit, Page::TEXT_BYTES_MAX], read).await
}

/// Lists the stacks of a generator that are not deleted, by name.
pub(crate) async fn list_all_of_generator(
    session: &mut dyn Session,
    generator: GeneratorId,
) -> Result<Vec<Stack>, StoreError> {
    let sql = columns!("FROM stacks WHERE generator_id = ?1 AND deleted_at IS NULL ORDER BY name");
    fetch_all(session, sql, values![generator], read).await
}

pub(crate) async fn get(session: &mut dyn Session, stack: StackId) -> Result<Stack, StoreError> {
    let sql = columns!("FROM stacks WHERE id = ?1 AND deleted_at IS NULL");
    require(fetch_one(session, sql, values![stack], read).await?, RecordKind::Stack, stack)
}

pub(crate) async fn list_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<Stack>, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = sized!(
        "FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
         WHERE assignments.agent_id = ?1 AND assignments.wanted = 1"
    );
    fetch_all(session, sql, values![agent, page.after, page.limit, Page::TEXT_BYTES_MAX], read).await
}

pub(crate) fn read(row: &mut Row) -> Result<Stack, StoreError> {
    Ok(Stack {
        id: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        deleted_at: row.take()?,
        name: row.take()?,
        description: row.take()?,
        generator_id: row.take()?,
    })
}
