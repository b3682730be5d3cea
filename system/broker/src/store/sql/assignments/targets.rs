//! Explicit targets: a stack at an agent.

use std::collections::BTreeSet;

use serde_json::json;
use sindri_model::wire::AgentTarget;
use sindri_model::{AgentId, StackId};

use super::{agent_replacement, matching};
use crate::store::records::{Page, RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::lookup::{require_inserted, require_that};
use crate::store::sql::shared::session::{Session, execute, fetch_all};
use crate::store::sql::shared::values::{Row, values};
use crate::store::sql::shared::{audit, counter};
use crate::store::sql::tables::{agents, registrations, stacks};

pub(crate) async fn add(
    session: &mut dyn Session,
    context: WriteContext,
    target: AgentTarget,
) -> Result<AgentTarget, StoreError> {
    counter::next_number(session).await?;
    agents::check_exists(session, target.agent_id).await?;
    let stack = stacks::get(session, target.stack_id).await?;
    if !registrations::is_registered(session, stack.generator_id, target.agent_id).await? {
        return Err(StoreError::NotRegistered { agent: target.agent_id, generator: stack.generator_id });
    }
    let sql = "INSERT INTO targets (id, agent_id, stack_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let rows = execute(session, sql, values![target.id, target.agent_id, target.stack_id]).await?;
    require_inserted(rows, RecordKind::Target, describe(target.agent_id, target.stack_id))?;
    matching::update_pair(session, &context, target.agent_id, target.stack_id).await?;
    let details = json!({"stack_id": target.stack_id});
    let resource = Some(target.agent_id.to_string());
    audit::record(session, &context, "target.created", "agent", resource, Some(details)).await?;
    Ok(target)
}

pub(crate) async fn remove(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    stack: StackId,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    agents::check_exists(session, agent).await?;
    let sql = "DELETE FROM targets WHERE agent_id = ?1 AND stack_id = ?2";
    if execute(session, sql, values![agent, stack]).await? > 0 {
        matching::update_pair(session, &context, agent, stack).await?;
    } else {
        // A stack that the agent took over from its predecessor has no target, and can be removed all the same.
        let is_left_over = agent_replacement::is_left_over(session, agent, stack).await?;
        require_that(is_left_over, RecordKind::Target, describe(agent, stack))?;
        matching::issue_removals(session, &context, &BTreeSet::from([(agent, stack)])).await?;
    }
    let details = json!({"stack_id": stack});
    audit::record(session, &context, "target.deleted", "agent", Some(agent.to_string()), Some(details)).await
}

pub(crate) async fn list(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentTarget>, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = "SELECT id, agent_id, stack_id FROM targets
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    fetch_all(session, sql, values![agent, page.after, page.limit], read).await
}

fn describe(agent: AgentId, stack: StackId) -> String {
    format!("of stack {stack} at agent {agent}")
}

fn read(row: &mut Row) -> Result<AgentTarget, StoreError> {
    Ok(AgentTarget { id: row.take()?, agent_id: row.take()?, stack_id: row.take()? })
}
