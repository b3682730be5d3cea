//! Creates, updates and deletes stacks.

use serde_json::json;
use sindri_model::wire::{Stack, UpdateStackRequest};
use sindri_model::{RevisionId, StackId};

use crate::event_types::EventType;
use crate::store::records::{NewRevision, RecordKind, StoreError, WriteContext};
use crate::store::sql::assignments::{dependencies, matching, policies};
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::{as_missing_reference, require_inserted};
use crate::store::sql::shared::outbox::WebhookEvent;
use crate::store::sql::shared::session::{Session, execute, failed, has_rows};
use crate::store::sql::shared::values::values;
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
    let details = json!({"name": name, "description": description});
    audit::record(session, &context, "stack.updated", RESOURCE_TYPE, Some(stack.to_string()), Some(details)).await?;
    stacks::get(session, stack).await
}

pub(crate) async fn delete(session: &mut dyn Session, context: WriteContext, stack: StackId) -> Result<(), StoreError> {
    let sequence = counter::next_number(session).await?;
    let deleted = stacks::get(session, stack).await?;
    if policies::is_suspended(session, stack).await? {
        return Err(StoreError::StackSuspended(deleted.name));
    }
    let id = RevisionId::generate_at(context.time, &context.entropy);
    let marker = NewRevision { id, stack, yaml_content: String::new(), is_deletion_marker: true };
    let numbered = NumberedRevision { context: &context, revision: &marker, sequence, only_for: None };
    revisions::insert(session, &[numbered]).await?;
    matching::handle_deleted_stack(session, stack, sequence).await?;
    for sql in ["DELETE FROM targets WHERE stack_id = ?1", "DELETE FROM stack_labels WHERE stack_id = ?1"] {
        execute(session, sql, values![stack]).await?;
    }
    // Agents still need the policy for the removal.
    policies::delete_other_annotations(session, stack).await?;
    let sql = "UPDATE stacks SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    execute(session, sql, values![context.time, stack]).await?;
    let data = json!({"stack_id": stack, "name": deleted.name, "generator_id": deleted.generator_id});
    audit::record(session, &context, "stack.deleted", RESOURCE_TYPE, Some(stack.to_string()), Some(data.clone()))
        .await?;
    let event = WebhookEvent { event_type: EventType::StackDeleted, agent: None, stack: Some(stack), data };
    outbox::publish(session, &context, event).await
}
