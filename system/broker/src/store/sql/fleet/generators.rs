//! Creates, updates and deletes generators.

use serde_json::json;
use sindri_model::GeneratorId;
use sindri_model::wire::{Generator, UpdateGeneratorRequest};

use crate::store::records::{KeyHolder, KeyRecord, RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::require_inserted;
use crate::store::sql::shared::session::{Session, execute, has_rows};
use crate::store::sql::shared::values::values;
use crate::store::sql::shared::{audit, changes as store_changes, counter, idempotency};
use crate::store::sql::stacks::lifecycle;
use crate::store::sql::tables::{generators, keys};

const RESOURCE_TYPE: &str = "generator";

pub(crate) async fn create(
    session: &mut dyn Session,
    context: WriteContext,
    generator: Generator,
    key: KeyRecord,
) -> Result<(), StoreError> {
    let content = || key.add_to_request(json!({"name": generator.name, "description": generator.description}));
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    idempotency::reject_repeated(session, request.as_ref()).await?;
    let sql = "INSERT INTO generators (id, created_at, updated_at, name, description, is_active, is_system)
               VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    let row = values![
        generator.id,
        context.time,
        &generator.name,
        generator.description.as_deref(),
        generator.is_active,
        generator.is_system
    ];
    require_inserted(execute(session, sql, row).await?, RecordKind::Generator, &generator.name)?;
    keys::create(session, &context, &key, KeyHolder::Generator(generator.id)).await?;
    idempotency::record(session, request.as_ref(), generator.id).await?;
    let details = json!({"name": generator.name});
    audit::record(session, &context, "generator.created", RESOURCE_TYPE, Some(generator.id.to_string()), Some(details))
        .await
}

pub(crate) async fn update(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
    changes: UpdateGeneratorRequest,
) -> Result<Generator, StoreError> {
    // Before anything else: no other change comes between what is read and what is written back.
    counter::next_number(session).await?;
    let current = generators::get(session, generator).await?;
    let name = changes.name.as_ref().unwrap_or(&current.name);
    let sql = "SELECT 1 FROM generators WHERE name = ?1 AND id <> ?2 AND deleted_at IS NULL";
    if has_rows(session, sql, values![name, generator]).await? {
        return Err(StoreError::AlreadyExists { kind: RecordKind::Generator, name: name.clone() });
    }
    let sql = "UPDATE generators SET name = ?1, description = ?2, is_active = ?3, updated_at = ?4 WHERE id = ?5";
    let description = changes.description.as_ref().or(current.description.as_ref());
    let is_active = changes.is_active.unwrap_or(current.is_active);
    execute(session, sql, values![name, description, is_active, context.time, generator]).await?;
    if is_active != current.is_active {
        store_changes::record_key_change(session).await?;
    }
    let details = json!(changes);
    audit::record(session, &context, "generator.updated", RESOURCE_TYPE, Some(generator.to_string()), Some(details))
        .await?;
    generators::get(session, generator).await
}

/// Deletes the stacks first, each with its deletion marker, so that agents remove them.
pub(crate) async fn delete(
    session: &mut dyn Session,
    context: WriteContext,
    generator: GeneratorId,
) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    let deleted = generators::get(session, generator).await?;
    lifecycle::delete_all(session, &context, generator).await?;
    keys::delete(session, KeyHolder::Generator(generator)).await?;
    execute(session, "DELETE FROM registrations WHERE generator_id = ?1", values![generator]).await?;
    let sql = "UPDATE generators SET deleted_at = ?1, updated_at = ?1, is_active = 0 WHERE id = ?2";
    execute(session, sql, values![context.time, generator]).await?;
    let details = json!({"name": deleted.name});
    audit::record(session, &context, "generator.deleted", RESOURCE_TYPE, Some(generator.to_string()), Some(details))
        .await
}
