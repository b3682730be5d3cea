//! Policy annotations of stacks: settings for the agents that have the stack.

use std::collections::{BTreeMap, BTreeSet};

use sindri_model::policy::{PolicyValue, SUSPEND_ANNOTATION, Suspension};
use sindri_model::wire::{DEPENDS_ON_ANNOTATION, POLICY_PREFIX, StackAnnotation, StackPolicy, TargetVersion};
use sindri_model::{AgentId, StackId};

use super::{dependencies, target_state};
use crate::store::records::{DEPENDENCIES_FACTOR, Page, StoreError};
use crate::store::sql::shared::session::{Session, execute_batch, failed, fetch_all, fetch_batch, single_column};
use crate::store::sql::shared::values::{Row, row, values};
use crate::store::sql::shared::{changes, counter};
use crate::store::sql::tables::agents;

/// Number of times that policies are read again because they changed meanwhile.
const READS_MAX: usize = 5;

/// Lists the policy annotations of each stack in the agent's target state that has any, by the id of the stack, with the version
/// of the target state to which they belong.
pub(crate) async fn list_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<(TargetVersion, Vec<StackPolicy>), StoreError> {
    agents::check_exists(session, agent).await?;
    let mut before = target_state::get_versions(session, agent).await?;
    for _ in 0..READS_MAX {
        let policies = read_policies(session, agent, &page).await?;
        let after = target_state::get_versions(session, agent).await?;
        if after == before {
            return Ok((after, policies));
        }
        before = after;
    }
    // Never an empty list: an agent would write a stack that is suspended.
    Err(StoreError::Unavailable)
}

async fn read_policies(session: &mut dyn Session, agent: AgentId, page: &Page) -> Result<Vec<StackPolicy>, StoreError> {
    let sql = "SELECT stack_id, key, value FROM stack_annotations
               WHERE key >= ?2 AND key < ?3 AND stack_id IN (
                 SELECT stack_id FROM (
                   SELECT stack_id, CAST(sum(bytes) OVER (ORDER BY stack_id) AS BIGINT) - bytes AS bytes_before FROM (
                     SELECT stack_annotations.stack_id, CAST(sum(octet_length(key) + octet_length(value)
                       * CASE key WHEN ?4 THEN CAST(?5 AS BIGINT) ELSE 1 END) AS BIGINT) AS bytes
                     FROM assignments JOIN stacks ON stacks.id = assignments.stack_id
                       JOIN stack_annotations ON stack_annotations.stack_id = assignments.stack_id
                     WHERE assignments.agent_id = ?1 AND key >= ?2 AND key < ?3
                       AND ((wanted = 1 AND newest IS NOT NULL AND newest_is_marker = 0)
                         OR (removal IS NOT NULL AND confirmed = 0))
                       AND (CAST(?6 AS TEXT) IS NULL OR stack_annotations.stack_id > ?6)
                     GROUP BY stack_annotations.stack_id
                     ORDER BY stack_annotations.stack_id LIMIT ?7) AS candidates) AS sized
                 WHERE bytes_before < ?8)
               ORDER BY stack_id, key";
    let values = values![
        agent,
        POLICY_PREFIX,
        end_of_prefix(),
        DEPENDS_ON_ANNOTATION,
        i64::try_from(DEPENDENCIES_FACTOR).map_err(failed)?,
        page.after.clone(),
        page.limit,
        Page::TEXT_BYTES_MAX,
    ];
    let rows = fetch_all(session, sql, values, read).await?;
    let mut policies: BTreeMap<StackId, BTreeMap<String, String>> = BTreeMap::new();
    for (stack, key, value) in rows {
        policies.entry(stack).or_default().insert(key, value);
    }
    let to_policy = |(stack_id, annotations)| StackPolicy { stack_id, annotations, depends_on: Vec::new() };
    let mut policies: Vec<StackPolicy> = policies.into_iter().map(to_policy).collect();
    dependencies::add_to_policies(session, agent, &mut policies).await?;
    Ok(policies)
}

/// Returns the policy annotations of a stack.
pub(crate) async fn list_of_stack(
    session: &mut dyn Session,
    stack: StackId,
) -> Result<BTreeMap<String, String>, StoreError> {
    let sql = "SELECT key, value FROM stack_annotations WHERE stack_id = ?1 AND key >= ?2 AND key < ?3 ORDER BY key";
    let read = |row: &mut Row| Ok((row.take()?, row.take()?));
    let found = fetch_all(session, sql, values![stack, POLICY_PREFIX, end_of_prefix()], read).await?;
    Ok(found.into_iter().collect())
}

/// Deletes the annotations of deleted stacks that are not policies.
pub(crate) async fn delete_other_annotations(session: &mut dyn Session, stacks: &[StackId]) -> Result<(), StoreError> {
    let sql = "WITH batch (stack_id, prefix, prefix_end) AS ({TEXT, TEXT, TEXT})
               DELETE FROM stack_annotations WHERE stack_id IN (SELECT stack_id FROM batch)
                 AND NOT (key >= (SELECT min(prefix) FROM batch) AND key < (SELECT min(prefix_end) FROM batch))";
    execute_batch(session, sql, stacks.iter().map(|stack| row![*stack, POLICY_PREFIX, end_of_prefix()]).collect()).await
}

/// Returns those of the stacks that are suspended on all clusters, or on some.
pub(crate) async fn find_suspended(
    session: &mut dyn Session,
    stacks: &[StackId],
) -> Result<BTreeSet<StackId>, StoreError> {
    let sql = "WITH batch (stack_id, key) AS ({TEXT, TEXT})
               SELECT stack_annotations.stack_id, stack_annotations.key, value FROM batch JOIN stack_annotations
                 ON stack_annotations.stack_id = batch.stack_id AND stack_annotations.key = batch.key";
    let rows = stacks.iter().map(|stack| row![*stack, SUSPEND_ANNOTATION]).collect();
    let resumed = PolicyValue::Suspend(Suspension::Everywhere(false));
    let annotations = fetch_batch(session, sql, rows, read).await?.into_iter();
    let suspended = annotations.filter(|(_, key, value)| PolicyValue::parse(key, value) != Ok(Some(resumed.clone())));
    Ok(suspended.map(|(stack, _, _)| stack).collect())
}

/// Rejects a policy annotation with a value that agents could not use.
pub(crate) fn check(annotation: &StackAnnotation) -> Result<(), StoreError> {
    PolicyValue::parse(&annotation.key, &annotation.value).map(drop).map_err(StoreError::InvalidPolicy)
}

/// Returns the smallest text that is greater than every text with the prefix.
fn end_of_prefix() -> String {
    let (last, rest) = POLICY_PREFIX.as_bytes().split_last().expect("the prefix is not empty");
    let text: Vec<u8> = rest.iter().copied().chain([last + 1]).collect();
    String::from_utf8(text).expect("the prefix is ASCII, and its last character is not the last of ASCII")
}

/// Requests a new pass of the agents that have a stack, after one of its policy annotations was added or removed.
pub(crate) async fn handle_annotation_change(
    session: &mut dyn Session,
    stack: StackId,
    key: &str,
) -> Result<(), StoreError> {
    if key.starts_with(POLICY_PREFIX) { request_recheck_of(session, stack).await } else { Ok(()) }
}

/// Requests a new pass of the agents that have a stack, and with it what the broker says about the stack.
pub(crate) async fn request_recheck_of(session: &mut dyn Session, stack: StackId) -> Result<(), StoreError> {
    let sql = "SELECT agent_id FROM assignments
               WHERE stack_id = ?1 AND (wanted = 1 OR (removal IS NOT NULL AND confirmed = 0)) ORDER BY agent_id";
    let agents: Vec<AgentId> = fetch_all(session, sql, values![stack], single_column).await?;
    let version = counter::next_number(session).await?;
    changes::request_recheck(session, &agents, version).await
}

fn read(row: &mut Row) -> Result<(StackId, String, String), StoreError> {
    Ok((row.take()?, row.take()?, row.take()?))
}
