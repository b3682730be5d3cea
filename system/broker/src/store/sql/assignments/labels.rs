//! Labels and annotations of agents and stacks.

use serde_json::json;
use sindri_model::wire::{AgentAnnotation, AgentLabel, StackAnnotation, StackLabel};
use sindri_model::{AgentId, StackId};

use crate::store::records::{Noun, Page, Stamp, StoreError};
use crate::store::sql::assignments::matching;
use crate::store::sql::assignments::policies;
use crate::store::sql::fleet::agents;
use crate::store::sql::shared::audit;
use crate::store::sql::shared::epoch;
use crate::store::sql::shared::lookup::{found, made};
use crate::store::sql::shared::session::{Row, Session, all, change, values};
use crate::store::sql::stacks::lifecycle as stacks;

pub(crate) async fn of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentLabel>, StoreError> {
    agents::require(session, agent).await?;
    let sql = "SELECT id, agent_id, label FROM agent_labels
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![agent, page.after, page.limit], read_agent_label).await
}

pub(crate) async fn add_to_agent(
    session: &mut dyn Session,
    stamp: Stamp,
    label: AgentLabel,
) -> Result<AgentLabel, StoreError> {
    epoch::tick(session).await?;
    agents::require(session, label.agent_id).await?;
    let sql = "INSERT INTO agent_labels (id, agent_id, label) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    made(change(session, sql, values![label.id, label.agent_id, &label.label]).await?, Noun::Label, &label.label)?;
    matching::of_agent_changed(session, &stamp, label.agent_id).await?;
    noted(session, &stamp, "agent.labelled", ("agent", label.agent_id.to_string()), &label.label).await?;
    Ok(label)
}

pub(crate) async fn remove_from_agent(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    label: String,
) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    agents::require(session, agent).await?;
    let sql = "DELETE FROM agent_labels WHERE agent_id = ?1 AND label = ?2";
    let gone = change(session, sql, values![agent, &label]).await? > 0;
    found(gone.then_some(()), Noun::Label, &label)?;
    matching::of_agent_changed(session, &stamp, agent).await?;
    noted(session, &stamp, "agent.unlabelled", ("agent", agent.to_string()), &label).await
}

pub(crate) async fn annotations_of_agent(
    session: &mut dyn Session,
    agent: AgentId,
    page: Page,
) -> Result<Vec<AgentAnnotation>, StoreError> {
    agents::require(session, agent).await?;
    let sql = "SELECT id, agent_id, key, value FROM agent_annotations
               WHERE agent_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![agent, page.after, page.limit], read_agent_annotation).await
}

pub(crate) async fn annotate_agent(
    session: &mut dyn Session,
    stamp: Stamp,
    annotation: AgentAnnotation,
) -> Result<AgentAnnotation, StoreError> {
    epoch::tick(session).await?;
    let agent = annotation.agent_id;
    agents::require(session, agent).await?;
    let sql = "INSERT INTO agent_annotations (id, agent_id, key, value) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let rows = change(session, sql, values![annotation.id, agent, &annotation.key, &annotation.value]).await?;
    made(rows, Noun::Annotation, &annotation.key)?;
    matching::of_agent_changed(session, &stamp, agent).await?;
    noted(session, &stamp, "agent.annotated", ("agent", agent.to_string()), &annotation.key).await?;
    Ok(annotation)
}

pub(crate) async fn remove_annotation_from_agent(
    session: &mut dyn Session,
    stamp: Stamp,
    agent: AgentId,
    key: String,
) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    agents::require(session, agent).await?;
    let sql = "DELETE FROM agent_annotations WHERE agent_id = ?1 AND key = ?2";
    let gone = change(session, sql, values![agent, &key]).await? > 0;
    found(gone.then_some(()), Noun::Annotation, &key)?;
    matching::of_agent_changed(session, &stamp, agent).await?;
    noted(session, &stamp, "agent.unannotated", ("agent", agent.to_string()), &key).await
}

pub(crate) async fn of_stack(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<StackLabel>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT id, stack_id, label FROM stack_labels
               WHERE stack_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![stack, page.after, page.limit], read_stack_label).await
}

pub(crate) async fn add_to_stack(
    session: &mut dyn Session,
    stamp: Stamp,
    label: StackLabel,
) -> Result<StackLabel, StoreError> {
    epoch::tick(session).await?;
    stacks::get(session, label.stack_id).await?;
    let sql = "INSERT INTO stack_labels (id, stack_id, label) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    made(change(session, sql, values![label.id, label.stack_id, &label.label]).await?, Noun::Label, &label.label)?;
    matching::of_stack_changed(session, &stamp, label.stack_id).await?;
    noted(session, &stamp, "stack.labelled", ("stack", label.stack_id.to_string()), &label.label).await?;
    Ok(label)
}

pub(crate) async fn remove_from_stack(
    session: &mut dyn Session,
    stamp: Stamp,
    stack: StackId,
    label: String,
) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    stacks::get(session, stack).await?;
    let sql = "DELETE FROM stack_labels WHERE stack_id = ?1 AND label = ?2";
    let gone = change(session, sql, values![stack, &label]).await? > 0;
    found(gone.then_some(()), Noun::Label, &label)?;
    matching::of_stack_changed(session, &stamp, stack).await?;
    noted(session, &stamp, "stack.unlabelled", ("stack", stack.to_string()), &label).await
}

pub(crate) async fn annotations_of_stack(
    session: &mut dyn Session,
    stack: StackId,
    page: Page,
) -> Result<Vec<StackAnnotation>, StoreError> {
    stacks::get(session, stack).await?;
    let sql = "SELECT id, stack_id, key, value FROM stack_annotations
               WHERE stack_id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR id > ?2) ORDER BY id LIMIT ?3";
    all(session, sql, values![stack, page.after, page.limit], read_stack_annotation).await
}

pub(crate) async fn annotate_stack(
    session: &mut dyn Session,
    stamp: Stamp,
    annotation: StackAnnotation,
) -> Result<StackAnnotation, StoreError> {
    epoch::tick(session).await?;
    let stack = annotation.stack_id;
    stacks::get(session, stack).await?;
    let sql = "INSERT INTO stack_annotations (id, stack_id, key, value) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let rows = change(session, sql, values![annotation.id, stack, &annotation.key, &annotation.value]).await?;
    made(rows, Noun::Annotation, &annotation.key)?;
    matching::of_stack_changed(session, &stamp, stack).await?;
    policies::annotation_changed(session, stack, &annotation.key).await?;
    noted(session, &stamp, "stack.annotated", ("stack", stack.to_string()), &annotation.key).await?;
    Ok(annotation)
}

pub(crate) async fn remove_annotation_from_stack(
    session: &mut dyn Session,
    stamp: Stamp,
    stack: StackId,
    key: String,
) -> Result<(), StoreError> {
    epoch::tick(session).await?;
    stacks::get(session, stack).await?;
    let sql = "DELETE FROM stack_annotations WHERE stack_id = ?1 AND key = ?2";
    let gone = change(session, sql, values![stack, &key]).await? > 0;
    found(gone.then_some(()), Noun::Annotation, &key)?;
    matching::of_stack_changed(session, &stamp, stack).await?;
    policies::annotation_changed(session, stack, &key).await?;
    noted(session, &stamp, "stack.unannotated", ("stack", stack.to_string()), &key).await
}

async fn noted(
    session: &mut dyn Session,
    stamp: &Stamp,
    action: &str,
    (kind, id): (&str, String),
    what: &str,
) -> Result<(), StoreError> {
    audit::record(session, stamp, action, kind, Some(id), Some(json!({"name": what}))).await
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
