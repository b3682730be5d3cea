//! Explicit targets: this stack at this agent.

use serde_json::json;
use sindri_model::wire::AgentTarget;
use sindri_model::{AgentId, StackId};

use crate::store::records::{Noun, Page, Stamp, StoreError};
use crate::store::sql::assignments::agent_replacement as succession;
use crate::store::sql::assignments::matching;
use crate::store::sql::fleet::agents;
use crate::store::sql::fleet::generators;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::lookup::{found, made};
use crate::store::sql::shared::session::{Row, Session, all, change, values};
use crate::store::sql::stacks::lifecycle as stacks;

pub(crate) async fn add(
    session: &mut dyn Session,
    stamp: Stamp,
    target: AgentTarget,
) -> Result<AgentTarget, StoreError> {
    epoch::tick(session).await?;
    agents::require(session, target.agent_id).await?;
    let stack = stacks::get(session, target.stack_id).await?;
    if !generators::is_registered(session, stack.generator_id, target.agent_id).await? {
        return Err(StoreError::NotRegistered { agent: target.agent_id, generator: stack.generator_id });
    }
    let sql = "INSERT INTO targets (id, agent_id, stack_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let rows = change(session, sql, values![target.id, target.agent_id, target.stack_id]).await?;
    made(rows, Noun::Target, in_words(target.agent_id, target.stack_id))?;
    matching::of_pair_changed(session, &stamp, target.agent_id, target.stack_id).await?;
    let details = json!({"stack_id": target.stack_id});
    let resource = Some(target.agent_id.to_string());
    audit::record(session, &stamp, "target.created", "agent", resource, Some(details)).await?;
    Ok(target)
}

pub(crate) async fn remove(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    stack: StackId,
) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    agents::require(session, agent).await?;
    let sql = "DELETE FROM targets WHERE agent_id = ?1 AND stack_id = ?2";
    if change(session, sql, values![agent, stack]).await? > 0 {
        matching::of_pair_changed(session, &stamp, agent, stack).await?;
    } else {
        // What was taken over from another has no target, and can be taken away all the same.
        let undecided = succession::is_undecided(session, agent, stack).await?;
        found(undecided.then_some(()), Noun::Target, in_words(agent, stack))?;
        matching::tell_to_remove(session, &stamp, (agent, stack)).await?;
    }
    let details = json!({"stack_id": stack});
    audit::record(session, &stamp, "target.deleted", "agent", Some(agent.to_string()), Some(details)).await
}

pub(crate) async fn list(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentTarget>, StoreError> {
    agents::require(session, agent).await?;
    let sql = "SELECT id, agent_id, stack_id FROM targets
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![agent, page.after, page.limit], read).await
}

fn in_words(agent: AgentId, stack: StackId) -> String {
    format!("of stack {stack} at agent {agent}")
}

fn read(row: &mut Row) -> Result<AgentTarget, StoreError> {
    Ok(AgentTarget { id: row.take()?, agent_id: row.take()?, stack_id: row.take()? })
}
