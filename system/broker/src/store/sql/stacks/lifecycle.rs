//! Stacks.

use serde_json::json;
use sindri_model::wire::{Stack, UpdateStackRequest};
use sindri_model::{AgentId, GeneratorId, RevisionId, StackId};

use crate::event_types::EventType;
use crate::store::records::{KeyHolder, NewRevision, Noun, Page, Stamp, StoreError, Whose};
use crate::store::sql::assignments::matching;
use crate::store::sql::fleet::agents;
use crate::store::sql::fleet::generators;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::idempotency as once;
use crate::store::sql::shared::lookup::{as_reference, found, made};
use crate::store::sql::shared::outbox::{Happening, announce};
use crate::store::sql::shared::session::{Row, Session, all, any, change, failed, one, values};
use crate::store::sql::tables::keys;
use crate::store::sql::tables::revisions::{self, Appended};

const WHAT: &str = "stack";

/// The columns that [`read`] reads, of a query that goes on as given.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT stacks.id, stacks.created_at, stacks.updated_at, stacks.deleted_at, stacks.name,
                    stacks.description, stacks.generator_id ",
            $rest
        )
    };
}

pub(crate) async fn create(session: &mut dyn Session, stamp: Stamp, stack: Stack) -> Result<Stack, StoreError> {
    if let Some(before) = once::made_before(session, &stamp, WHAT).await? {
        return get(session, before.parse().map_err(failed)?).await;
    }
    generators::get(session, stack.generator_id).await.map_err(as_reference)?;
    let sql = "INSERT INTO stacks (id, created_at, updated_at, name, description, generator_id)
               VALUES (?1, ?2, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    let row = values![stack.id, stamp.at, &stack.name, stack.description.as_deref(), stack.generator_id];
    made(change(session, sql, row).await?, Noun::Stack, &stack.name)?;
    let active = "UPDATE generators SET last_active_at = ?1 WHERE id = ?2";
    change(session, active, values![stamp.at, stack.generator_id]).await?;
    once::remember(session, &stamp, WHAT, stack.id).await?;
    let data = json!({"stack_id": stack.id, "name": stack.name, "generator_id": stack.generator_id});
    audit::record(session, &stamp, "stack.created", WHAT, Some(stack.id.to_string()), Some(data.clone())).await?;
    let happening = Happening { event: EventType::StackCreated, agent: None, stack: Some(stack.id), data };
    announce(session, &stamp, happening).await?;
    Ok(stack)
}

pub(crate) async fn list(session: &mut dyn Session, whose: Whose, page: Page) -> Result<Vec<Stack>, StoreError> {
    let owner = match whose {
        Whose::All => None,
        Whose::Generator(generator) => Some(generator),
        Whose::Key(key) => match keys::holder_of(session, key).await? {
            Some(KeyHolder::Generator(generator)) => Some(generator),
            Some(KeyHolder::Admin) => None,
            Some(KeyHolder::Agent(agent)) => return of_agent(session, agent, page).await,
            None => return Ok(Vec::new()),
        },
    };
    owned_by(session, owner, page).await
}

async fn owned_by(session: &mut dyn Session, owner: Option<GeneratorId>, page: Page) -> Result<Vec<Stack>, StoreError> {
    let sql = columns!(
        "FROM stacks WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL OR generator_id = ?1)
          AND (CAST(?2 AS TEXT) IS NULL OR (name, id) > (SELECT name, id FROM stacks WHERE id = ?2))
        ORDER BY name, id LIMIT ?3"
    );
    all(session, sql, values![owner, page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, stack: StackId) -> Result<Stack, StoreError> {
    let sql = columns!("FROM stacks WHERE id = ?1 AND deleted_at IS NULL");
    found(one(session, sql, values![stack], read).await?, Noun::Stack, stack)
}

pub(crate) async fn of_agent(session: &mut dyn Session, agent: AgentId, page: Page) -> Result<Vec<Stack>, StoreError> {
    agents::require(session, agent).await?;
    let sql = columns!(
        "FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
        WHERE assignments.agent_id = ?1 AND assignments.wanted = 1
          AND (CAST(?2 AS TEXT) IS NULL OR (name, id) > (SELECT name, id FROM stacks WHERE id = ?2))
        ORDER BY name, id LIMIT ?3"
    );
    all(session, sql, values![agent, page.after, page.limit], read).await
}

pub(crate) async fn update(
    session: &mut dyn Session,
    stamp: Stamp,
    stack: StackId,
    changes: UpdateStackRequest,
) -> Result<Stack, StoreError> {
    let now = get(session, stack).await?;
    let name = changes.name.as_ref().unwrap_or(&now.name);
    let sql = "SELECT 1 FROM stacks WHERE generator_id = ?1 AND name = ?2 AND id <> ?3 AND deleted_at IS NULL";
    if any(session, sql, values![now.generator_id, name, stack]).await? {
        return Err(StoreError::Duplicate { noun: Noun::Stack, name: name.clone() });
    }
    let description = changes.description.as_ref().or(now.description.as_ref());
    let sql = "UPDATE stacks SET name = ?1, description = ?2, updated_at = ?3 WHERE id = ?4";
    change(session, sql, values![name, description, stamp.at, stack]).await?;
    let details = json!({"name": name, "description": description});
    audit::record(session, &stamp, "stack.updated", WHAT, Some(stack.to_string()), Some(details)).await?;
    get(session, stack).await
}

pub(crate) async fn delete(session: &mut dyn Session, stamp: Stamp, stack: StackId) -> Result<(), StoreError> {
    let sequence = epoch::tick(session).await?;
    let gone = get(session, stack).await?;
    let id = RevisionId::mint_at(stamp.at, &stamp.entropy);
    let marker = NewRevision { id, stack, yaml_content: String::new(), is_deletion_marker: true };
    let appended = Appended { stamp: &stamp, revision: &marker, sequence, only_for: None };
    revisions::insert(session, &[appended]).await?;
    matching::stack_was_deleted(session, stack, sequence).await?;
    for sql in [
        "DELETE FROM targets WHERE stack_id = ?1",
        "DELETE FROM stack_labels WHERE stack_id = ?1",
        "DELETE FROM stack_annotations WHERE stack_id = ?1",
    ] {
        change(session, sql, values![stack]).await?;
    }
    let sql = "UPDATE stacks SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    change(session, sql, values![stamp.at, stack]).await?;
    let data = json!({"stack_id": stack, "name": gone.name, "generator_id": gone.generator_id});
    audit::record(session, &stamp, "stack.deleted", WHAT, Some(stack.to_string()), Some(data.clone())).await?;
    let happening = Happening { event: EventType::StackDeleted, agent: None, stack: Some(stack), data };
    announce(session, &stamp, happening).await
}

fn read(row: &mut Row) -> Result<Stack, StoreError> {
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
