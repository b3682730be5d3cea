//! The annotations of stacks that tell agents how to treat them.

use std::collections::BTreeMap;

use sindri_model::wire::{POLICY_PREFIX, StackPolicy};
use sindri_model::{AgentId, StackId};

use crate::store::records::StoreError;
use crate::store::sql::fleet::agents;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::session::{Row, Session, all, only, values};

/// Of every stack in the agent's target state that has any.
pub(crate) async fn of_agent(session: &mut dyn Session, agent: AgentId) -> Result<Vec<StackPolicy>, StoreError> {
    agents::require(session, agent).await?;
    let sql = "SELECT stack_annotations.stack_id, key, value
               FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
                 JOIN stack_annotations ON stack_annotations.stack_id = assignments.stack_id
               WHERE assignments.agent_id = ?1 AND key >= ?2 AND key < ?3
                 AND ((wanted = 1 AND newest IS NOT NULL AND newest_is_marker = 0)
                   OR (removal IS NOT NULL AND confirmed = 0))
               ORDER BY stack_annotations.stack_id, key";
    let rows = all(session, sql, values![agent, POLICY_PREFIX, after_prefix()], read).await?;
    let mut policies: BTreeMap<StackId, BTreeMap<String, String>> = BTreeMap::new();
    for (stack, key, value) in rows {
        policies.entry(stack).or_default().insert(key, value);
    }
    Ok(policies.into_iter().map(|(stack_id, annotations)| StackPolicy { stack_id, annotations }).collect())
}

/// The first text after all that begin with the prefix.
fn after_prefix() -> String {
    let (last, rest) = POLICY_PREFIX.as_bytes().split_last().expect("the prefix is not empty");
    let text: Vec<u8> = rest.iter().copied().chain([last + 1]).collect();
    String::from_utf8(text).expect("the prefix is ASCII, and its last character is not the last of ASCII")
}

/// An annotation has come or gone: whoever has the stack looks again, if it is meant for agents.
pub(crate) async fn annotation_changed(session: &mut dyn Session, stack: StackId, key: &str) -> Result<(), StoreError> {
    if !key.starts_with(POLICY_PREFIX) {
        return Ok(());
    }
    let sql = "SELECT agent_id FROM assignments
               WHERE stack_id = ?1 AND (wanted = 1 OR (removal IS NOT NULL AND confirmed = 0)) ORDER BY agent_id";
    let agents: Vec<AgentId> = all(session, sql, values![stack], only).await?;
    let version = epoch::tick(session).await?;
    epoch::nudge(session, &agents, version).await
}

fn read(row: &mut Row) -> Result<(StackId, String, String), StoreError> {
    Ok((row.take()?, row.take()?, row.take()?))
}
