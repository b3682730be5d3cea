//! Creates, updates and deletes stacks.

use serde_json::json;
use sindri_model::wire::{Stack, UpdateStackRequest};
use sindri_model::{GeneratorId, RevisionId, Sequence, StackId};

use crate::event_types::EventType;
use crate::store::records::{NewRevision, RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::{dependencies, matching, policies};
use crate::store::sql::shared::audit::AuditEntry;
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::{as_missing_reference, require_inserted};
use crate::store::sql::shared::outbox::WebhookEvent;
use crate::store::sql::shared::session::{Session, execute, execute_batch, failed, has_rows};
use crate::store::sql::shared::values::{row, values};
use crate::store::sql::shared::{audit, counter, idempotency, outbox};
use crate::store::sql::tables::revisions::NumberedRevision;
use crate::store::sql::tables::{generators, revisions, stacks};

const RESOURCE_TYPE: &str = "stack";

pub(crate) async fn create(
    session: &mut dyn Session,
    context: WriteContext,
    stack: Stack,
) -> Result<Stack, StoreError> {
    // The counter first: it excludes a deletion of the generator, which would not delete this stack.
    counter::next_number(session).await?;
    let content = || json!({"name": stack.name, "description": stack.description, "generator": stack.generator_id});
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    if let Some(created) = idempotency::find_created(session, request.as_ref()).await? {
        return stacks::get(session, created.parse().map_err(failed)?).await;
    }
    generators::get(session, stack.generator_id).await.map_err(as_missing_reference)?;
    let sql = "INSERT INTO stacks (id, created_at, updated_at, name, description, generator_id)
               VALUES (?1, ?2, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    let row = values![stack.id, context.time, &stack.name, stack.description.as_deref(), stack.generator_id];
    require_inserted(execute(session, sql, row).await?, RecordKind::Stack, &stack.name)?;
    let active = "UPDATE generators SET last_active_at = ?1 WHERE id = ?2";
    execute(session, active, values![context.time, stack.generator_id]).await?;
    idempotency::record(session, request.as_ref(), stack.id).await?;
    let data = json!({"stack_id": stack.id, "name": stack.name, "generator_id": stack.generator_id});
    audit::record(session, &context, "stack.created", RESOURCE_TYPE, Some(stack.id.to_string()), Some(data.clone()))
        .await?;
    let event = WebhookEvent { event_type: EventType::StackCreated, agent: None, stack: Some(stack.id), data };
    outbox::publish(session, &context, event).await?;
    Ok(stack)
}

pub(crate) async fn update(
    session: &mut dyn Session,
    context: WriteContext,
    stack: StackId,
    changes: UpdateStackRequest,
) -> Result<Stack, StoreError> {
    // Before anything else: no other change comes between what is read and what is written back.
    counter::next_number(session).await?;
    let current = stacks::get(session, stack).await?;
    let name = changes.name.as_ref().unwrap_or(&current.name);
    let sql = "SELECT 1 FROM stacks WHERE generator_id = ?1 AND name = ?2 AND id <> ?3 AND deleted_at IS NULL";
    if has_rows(session, sql, values![current.generator_id, name, stack]).await? {
        return Err(StoreError::AlreadyExists { kind: RecordKind::Stack, name: name.clone() });
    }
    if *name != current.name {
        dependencies::check_name(session, &current, name).await?;
    }
    let description = changes.description.as_ref().or(current.description.as_ref());
    let sql = "UPDATE stacks SET name = ?1, description = ?2, updated_at = ?3 WHERE id = ?4";
    execute(session, sql, values![name, description, context.time, stack]).await?;
    if *name != current.name {
        policies::request_recheck_of(session, stack).await?;
    }
    let details = json!({"name": name, "description": description});
    audit::record(session, &context, "stack.updated", RESOURCE_TYPE, Some(stack.to_string()), Some(details)).await?;
    stacks::get(session, stack).await
}

pub(crate) async fn delete(session: &mut dyn Session, context: WriteContext, stack: StackId) -> Result<(), StoreError> {
    let sequence = counter::next_number(session).await?;
    let deleted = stacks::get(session, stack).await?;
    delete_numbered(session, &context, &[(deleted, sequence)]).await
}

/// Deletes the stacks of a generator, each with its deletion marker. The caller has locked the counter.
pub(crate) async fn delete_all(
    session: &mut dyn Session,
    context: &WriteContext,
    generator: GeneratorId,
) -> Result<(), StoreError> {
    let owned = stacks::list_all_of_generator(session, generator).await?;
    if owned.is_empty() {
        return Ok(());
    }
    let sequences = counter::next_numbers(session, owned.len()).await?;
    delete_numbered(session, context, &owned.into_iter().zip(sequences).collect::<Vec<_>>()).await
}

/// Deletes stacks; the numbers are the sequences of their deletion markers. Each statement is sent once for all of them.
async fn delete_numbered(
    session: &mut dyn Session,
    context: &WriteContext,
    numbered: &[(Stack, Sequence)],
) -> Result<(), StoreError> {
    let ids: Vec<StackId> = numbered.iter().map(|(stack, _)| stack.id).collect();
    let suspended = policies::find_suspended(session, &ids).await?;
    if let Some((stack, _)) = numbered.iter().find(|(stack, _)| suspended.contains(&stack.id)) {
        return Err(StoreError::StackSuspended(stack.name.clone()));
    }
    let markers: Vec<NewRevision> = ids.iter().map(|stack| new_marker(context, *stack)).collect();
    let markers: Vec<NumberedRevision<'_>> = markers
        .iter()
        .zip(numbered)
        .map(|(revision, (_, sequence))| NumberedRevision { context, revision, sequence: *sequence, only_for: None })
        .collect();
    revisions::insert(session, &markers).await?;
    matching::handle_deleted_stacks(session, &markers).await?;
    let rows = || ids.iter().map(|stack| row![*stack]).collect::<Vec<_>>();
    for sql in [
        "WITH batch (stack_id) AS ({TEXT}) DELETE FROM targets WHERE stack_id IN (SELECT stack_id FROM batch)",
        "WITH batch (stack_id) AS ({TEXT}) DELETE FROM stack_labels WHERE stack_id IN (SELECT stack_id FROM batch)",
    ] {
        execute_batch(session, sql, rows()).await?;
    }
    // Agents still need the policies for the removals.
    policies::delete_other_annotations(session, &ids).await?;
    let sql = "WITH batch (stack_id, at) AS ({TEXT, BIGINT})
               UPDATE stacks SET deleted_at = batch.at, updated_at = batch.at FROM batch WHERE stacks.id = batch.stack_id";
    execute_batch(session, sql, ids.iter().map(|stack| row![*stack, context.time]).collect()).await?;
    let (mut entries, mut events) = (Vec::new(), Vec::new());
    for (stack, _) in numbered {
        let data = json!({"stack_id": stack.id, "name": stack.name, "generator_id": stack.generator_id});
        entries.push(AuditEntry {
            context,
            action: "stack.deleted",
            resource_type: RESOURCE_TYPE,
            resource: Some(stack.id.to_string()),
            details: Some(data.clone()),
        });
        let event = WebhookEvent { event_type: EventType::StackDeleted, agent: None, stack: Some(stack.id), data };
        events.push((context, event));
    }
    audit::record_all(session, entries).await?;
    outbox::publish_all(session, &events).await
}

fn new_marker(context: &WriteContext, stack: StackId) -> NewRevision {
    let id = RevisionId::generate_at(context.time, &context.entropy);
    NewRevision { id, stack, yaml_content: String::new(), is_deletion_marker: true }
}
