//! Creates and deletes administrators.

use serde_json::json;
use sindri_model::AdminId;
use sindri_model::wire::{Admin, AdminRole};

use crate::store::records::{KeyHolder, KeyRecord, RecordKind, StoreError, WriteContext};
use crate::store::sql::shared::idempotency::IdempotentRequest;
use crate::store::sql::shared::lookup::require_inserted;
use crate::store::sql::shared::session::{Session, execute, has_rows};
use crate::store::sql::shared::values::values;
use crate::store::sql::shared::{audit, counter, idempotency};
use crate::store::sql::tables::{admins, keys};

const RESOURCE_TYPE: &str = "admin";
/// Name of the administrator that the first start creates.
const FIRST_NAME: &str = "admin";

/// Creates the first administrator, unless there is one; returns true if it did.
pub(crate) async fn create_first(
    session: &mut dyn Session,
    context: WriteContext,
    key: KeyRecord,
) -> Result<bool, StoreError> {
    // Two brokers may start at once on an empty database: the second waits here, and then finds the key.
    counter::next_number(session).await?;
    if keys::has_admin(session).await? {
        return Ok(false);
    }
    let admin = Admin {
        id: AdminId::generate(&context.entropy),
        created_at: context.time,
        name: FIRST_NAME.to_owned(),
        role: AdminRole::Admin,
        key_expires_at: None,
    };
    insert(session, &context, &admin, &key).await?;
    Ok(true)
}

pub(crate) async fn create(
    session: &mut dyn Session,
    context: WriteContext,
    admin: Admin,
    key: KeyRecord,
) -> Result<(), StoreError> {
    let content = || key.add_to_request(json!({"name": admin.name, "role": admin.role}));
    let request = IdempotentRequest::new(&context, RESOURCE_TYPE, content);
    idempotency::reject_repeated(session, request.as_ref()).await?;
    insert(session, &context, &admin, &key).await?;
    idempotency::record(session, request.as_ref(), admin.id).await
}

async fn insert(
    session: &mut dyn Session,
    context: &WriteContext,
    admin: &Admin,
    key: &KeyRecord,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO admins (id, created_at, updated_at, name, is_read_only)
               VALUES (?1, ?2, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    let row = values![admin.id, context.time, &admin.name, admin.role == AdminRole::Reader];
    require_inserted(execute(session, sql, row).await?, RecordKind::Admin, &admin.name)?;
    keys::create(session, context, key, KeyHolder::Admin(admin.id)).await?;
    record(session, context, "admin.created", admin).await
}

/// Records a person, unless there is a record; returns true if there is one that was not deleted.
pub(crate) async fn record_person(
    session: &mut dyn Session,
    context: WriteContext,
    person: Admin,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO admins (id, created_at, updated_at, name, is_read_only)
               VALUES (?1, ?2, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    let row = values![person.id, context.time, &person.name, person.role == AdminRole::Reader];
    if execute(session, sql, row).await? > 0 {
        record(session, &context, "admin.created", &person).await?;
        return Ok(true);
    }
    has_rows(session, "SELECT 1 FROM admins WHERE id = ?1 AND deleted_at IS NULL", values![person.id]).await
}

pub(crate) async fn delete(session: &mut dyn Session, context: WriteContext, admin: AdminId) -> Result<(), StoreError> {
    counter::next_number(session).await?;
    let deleted = admins::get(session, admin).await?;
    if deleted.role == AdminRole::Admin {
        admins::require_another(session, admin).await?;
    }
    keys::delete(session, KeyHolder::Admin(admin)).await?;
    let sql = "UPDATE admins SET deleted_at = ?1, updated_at = ?1 WHERE id = ?2";
    execute(session, sql, values![context.time, admin]).await?;
    record(session, &context, "admin.deleted", &deleted).await
}

async fn record(
    session: &mut dyn Session,
    context: &WriteContext,
    action: &str,
    admin: &Admin,
) -> Result<(), StoreError> {
    let details = json!({"name": admin.name, "role": admin.role});
    audit::record(session, context, action, RESOURCE_TYPE, Some(admin.id.to_string()), Some(details)).await
}
