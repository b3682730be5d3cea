//! Labels and annotations of agents and stacks.

use serde_json::json;
use sindri_model::wire::{AgentAnnotation, AgentLabel, StackAnnotation, StackLabel};
use sindri_model::{AgentId, StackId};

use super::{dependencies, matching, policies};
use crate::store::records::{Page, RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::lookup::{require, require_inserted, require_that};
use crate::store::sql::shared::session::{Session, execute, fetch_all, fetch_one};
use crate::store::sql::shared::values::{Row, values};
use crate::store::sql::shared::{audit, counter};
use crate::store::sql::tables::{agents, stacks};

/// A query of the annotations in a table, up to the size in the fourth parameter; the second argument is the column of their
/// owner.
macro_rules! sized_annotations {
    ($table:literal, $owner:literal) => {
        concat!(
            "SELECT id, ",
            $owner,
            ", key, value FROM ",
            $table,
            " WHERE id IN (
               SELECT id FROM (
                 SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS bytes_before FROM (
                   SELECT id, octet_length(key) + octet_length(value) AS bytes FROM ",
            $table,
            " WHERE ",
            $owner,
            " = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3) AS candidates) AS sized
               WHERE bytes_before < ?4)
             ORDER BY id"
        )
    };
}

pub(crate) async fn list_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentLabel>, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = "SELECT id, agent_id, label FROM agent_labels
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    fetch_all(session, sql, values![agent, page.after, page.limit], read_agent_label).await
}

pub(crate) async fn add_to_agent(
    session: &mut dyn Session,
    context: WriteContext,
    label: AgentLabel,
) -> Result<AgentLabel, StoreError> {
    counter::next_number(session).await?;
    agents::check_exists(session, label.agent_id).await?;
    let sql = "INSERT INTO agent_labels (id, agent_id, label) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    require_inserted(
        execute(session, sql, values![label.id, label.agent_id, &label.label]).await?,
        RecordKind::AgentLabel,
        &label.label,
    )?;
    matching::update_agent(session, &context, label.agent_id).await?;
    record_audit(session, &context, "agent.labelled", ("agent", label.agent_id.to_string()), &label.label).await?;
    Ok(label)
}

pub(crate) async fn remove_from_agent(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    label: String,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    agents::check_exists(session, agent).await?;
    let sql = "DELETE FROM agent_labels WHERE agent_id = ?1 AND label = ?2";
    let was_removed = execute(session, sql, values![agent, &label]).await? > 0;
    require_that(was_removed, RecordKind::AgentLabel, &label)?;
    matching::update_agent(session, &context, agent).await?;
    record_audit(session, &context, "agent.unlabelled", ("agent", agent.to_string()), &label).await
}

pub(crate) async fn list_annotations_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentAnnotation>, StoreError> {
    agents::check_exists(session, agent).await?;
    let sql = sized_annotations!("agent_annotations", "agent_id");
    let values = values![agent, page.after, page.limit, Page::TEXT_BYTES_MAX];
    fetch_all(session, sql, values, read_agent_annotation).await
}

pub(crate) async fn annotate_agent(
    session: &mut dyn Session,
    context: WriteContext,
    annotation: AgentAnnotation,
) -> Result<AgentAnnotation, StoreError> {
    counter::next_number(session).await?;
    let agent = annotation.agent_id;
    agents::check_exists(session, agent).await?;
    let sql = "INSERT INTO agent_annotations (id, agent_id, key, value) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let rows = execute(session, sql, values![annotation.id, agent, &annotation.key, &annotation.value]).await?;
    require_inserted(rows, RecordKind::AgentAnnotation, &annotation.key)?;
    matching::update_agent(session, &context, agent).await?;
    record_audit(session, &context, "agent.annotated", ("agent", agent.to_string()), &annotation.key).await?;
    Ok(annotation)
}

/// Adds an annotation, or replaces its value, so that a stack which matches before and after stays assigned. Does nothing if
/// the agent has the value already.
pub(crate) async fn set_annotation_of_agent(
    session: &mut dyn Session,
    context: WriteContext,
    annotation: AgentAnnotation,
) -> Result<AgentAnnotation, StoreError> {
    let AgentAnnotation { id, agent_id: agent, key, value } = annotation;
    agents::check_exists(session, agent).await?;
    let sql = "SELECT id, agent_id, key, value FROM agent_annotations WHERE agent_id = ?1 AND key = ?2 AND value = ?3";
    if let Some(same) = fetch_one(session, sql, values![agent, &key, &value], read_agent_annotation).await? {
        return Ok(same);
    }
    counter::next_number(session).await?;
    agents::check_exists(session, agent).await?;
    let sql = "INSERT INTO agent_annotations (id, agent_id, key, value) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (agent_id, key) DO UPDATE SET value = excluded.value RETURNING id, agent_id, key, value";
    let stored = fetch_one(session, sql, values![id, agent, &key, &value], read_agent_annotation).await?;
    matching::update_agent(session, &context, agent).await?;
    record_audit(session, &context, "agent.annotated", ("agent", agent.to_string()), &key).await?;
    require(stored, RecordKind::AgentAnnotation, key)
}

pub(crate) async fn remove_annotation_from_agent(
    session: &mut dyn Session,
    context: WriteContext,
    agent: AgentId,
    key: String,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    agents::check_exists(session, agent).await?;
    let sql = "DELETE FROM agent_annotations WHERE agent_id = ?1 AND key = ?2";
    let was_removed = execute(session, sql, values![agent, &key]).await? > 0;
    require_that(was_removed, RecordKind::AgentAnnotation, &key)?;
    matching::update_agent(session, &context, agent).await?;
    record_audit(session, &context, "agent.unannotated", ("agent", agent.to_string()), &key).await
}

pub(crate) async fn list_of_stack(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<StackLabel>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT id, stack_id, label FROM stack_labels
               WHERE stack_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    fetch_all(session, sql, values![stack, page.after, page.limit], read_stack_label).await
}

pub(crate) async fn add_to_stack(
    session: &mut dyn Session,
    context: WriteContext,
    label: StackLabel,
) -> Result<StackLabel, StoreError> {
    counter::next_number(session).await?;
    stacks::get(session, label.stack_id).await?;
    let sql = "INSERT INTO stack_labels (id, stack_id, label) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    require_inserted(
        execute(session, sql, values![label.id, label.stack_id, &label.label]).await?,
        RecordKind::StackLabel,
        &label.label,
    )?;
    matching::update_stack(session, &context, label.stack_id).await?;
    record_audit(session, &context, "stack.labelled", ("stack", label.stack_id.to_string()), &label.label).await?;
    Ok(label)
}

pub(crate) async fn remove_from_stack(
    session: &mut dyn Session,
    context: WriteContext,
    stack: StackId,
    label: String,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    stacks::get(session, stack).await?;
    let sql = "DELETE FROM stack_labels WHERE stack_id = ?1 AND label = ?2";
    let was_removed = execute(session, sql, values![stack, &label]).await? > 0;
    require_that(was_removed, RecordKind::StackLabel, &label)?;
    matching::update_stack(session, &context, stack).await?;
    record_audit(session, &context, "stack.unlabelled", ("stack", stack.to_string()), &label).await
}

pub(crate) async fn list_annotations_of_stack(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<StackAnnotation>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = sized_annotations!("stack_annotations", "stack_id");
    let values = values![stack, page.after, page.limit, Page::TEXT_BYTES_MAX];
    fetch_all(session, sql, values, read_stack_annotation).await
}

pub(crate) async fn annotate_stack(
    session: &mut dyn Session,
    context: WriteContext,
    annotation: StackAnnotation,
) -> Result<StackAnnotation, StoreError> {
    counter::next_number(session).await?;
    let stack = annotation.stack_id;
    let annotated = stacks::get(session, stack).await?;
    policies::check(&annotation)?;
    dependencies::check(session, &annotated, &annotation).await?;
    let sql = "INSERT INTO stack_annotations (id, stack_id, key, value) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let rows = execute(session, sql, values![annotation.id, stack, &annotation.key, &annotation.value]).await?;
    require_inserted(rows, RecordKind::StackAnnotation, &annotation.key)?;
    matching::update_stack(session, &context, stack).await?;
    policies::handle_annotation_change(session, stack, &annotation.key).await?;
    record_audit(session, &context, "stack.annotated", ("stack", stack.to_string()), &annotation.key).await?;
    Ok(annotation)
}

/// Adds an annotation, or replaces its value, as [`set_annotation_of_agent`] does. A value that is rejected changes nothing.
pub(crate) async fn set_annotation_of_stack(
    session: &mut dyn Session,
    context: WriteContext,
    annotation: StackAnnotation,
) -> Result<StackAnnotation, StoreError> {
    let (stack, key) = (annotation.stack_id, &annotation.key);
    stacks::get(session, stack).await?;
    let sql = "SELECT id, stack_id, key, value FROM stack_annotations WHERE stack_id = ?1 AND key = ?2 AND value = ?3";
    if let Some(same) = fetch_one(session, sql, values![stack, key, &annotation.value], read_stack_annotation).await? {
        return Ok(same);
    }
    counter::next_number(session).await?;
    let annotated = stacks::get(session, stack).await?;
    policies::check(&annotation)?;
    dependencies::check(session, &annotated, &annotation).await?;
    let sql = "INSERT INTO stack_annotations (id, stack_id, key, value) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (stack_id, key) DO UPDATE SET value = excluded.value RETURNING id, stack_id, key, value";
    let values = values![annotation.id, stack, key, &annotation.value];
    let stored = fetch_one(session, sql, values, read_stack_annotation).await?;
    matching::update_stack(session, &context, stack).await?;
    policies::handle_annotation_change(session, stack, key).await?;
    record_audit(session, &context, "stack.annotated", ("stack", stack.to_string()), key).await?;
    require(stored, RecordKind::StackAnnotation, key)
}

pub(crate) async fn remove_annotation_from_stack(
    session: &mut dyn Session,
    context: WriteContext,
    stack: StackId,
    key: String,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    stacks::get(session, stack).await?;
    let sql = "DELETE FROM stack_annotations WHERE stack_id = ?1 AND key = ?2";
    let was_removed = execute(session, sql, values![stack, &key]).await? > 0;
    require_that(was_removed, RecordKind::StackAnnotation, &key)?;
    matching::update_stack(session, &context, stack).await?;
    policies::handle_annotation_change(session, stack, &key).await?;
    record_audit(session, &context, "stack.unannotated", ("stack", stack.to_string()), &key).await
}

async fn record_audit(
    session: &mut dyn Session,
    context: &WriteContext,
    action: &str,
    (resource_type, id): (&str, String),
    name: &str,
) -> Result<(), StoreError> {
    audit::record(session, context, action, resource_type, Some(id), Some(json!({"name": name}))).await
}

fn read_agent_label(row: &mut Row) -> Result<AgentLabel, StoreError> {
    Ok(AgentLabel { id: row.take()?, agent_id: row.take()?, label: row.take()? })
}

fn read_agent_annotation(row: &mut Row) -> Result<AgentAnnotation, StoreError> {
    Ok(AgentAnnotation { id: row.take()?, agent_id: row.take()?, key: row.take()?, value: row.take()? })
}

fn read_stack_label(row: &mut Row) -> Result<StackLabel, StoreError> {
    Ok(StackLabel { id: row.take()?, stack_id: row.take()?, label: row.take()? })
}

fn read_stack_annotation(row: &mut Row) -> Result<StackAnnotation, StoreError> {
    Ok(StackAnnotation { id: row.take()?, stack_id: row.take()?, key: row.take()?, value: row.take()? })
}
