//! Rows of the table `admins`.

use sindri_model::AdminId;
use sindri_model::wire::{Admin, AdminRole};

use crate::store::records::{Page, RecordKind, StoreError};
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, fetch_all, fetch_one, has_rows};
use crate::store::sql::shared::values::{Row, values};

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, created_at, name, is_read_only,
               (SELECT min(expires_at) FROM keys WHERE keys.admin_id = admins.id AND replaced_at IS NULL) FROM admins ",
            $rest
        )
    };
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<Admin>, StoreError> {
    let sql = columns!(
        "WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL
          OR (name, id) > (SELECT name, id FROM admins WHERE id = ?1)) ORDER BY name, id LIMIT ?2"
    );
    fetch_all(session, sql, values![page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, admin: AdminId) -> Result<Admin, StoreError> {
    let sql = columns!("WHERE id = ?1 AND deleted_at IS NULL");
    require(fetch_one(session, sql, values![admin], read).await?, RecordKind::Admin, admin)
}

/// Fails unless another administrator than this one has all permissions and a key that does not expire, so that the
/// broker can always be administrated.
pub(crate) async fn require_another(session: &mut dyn Session, admin: AdminId) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM admins JOIN keys ON keys.admin_id = admins.id
               WHERE admins.id <> ?1 AND is_read_only = 0 AND deleted_at IS NULL AND expires_at IS NULL LIMIT 1";
    if has_rows(session, sql, values![admin]).await? { Ok(()) } else { Err(StoreError::LastAdmin) }
}

fn read(row: &mut Row) -> Result<Admin, StoreError> {
    let (id, created_at, name) = (row.take()?, row.take()?, row.take()?);
    let role = if row.take()? { AdminRole::Reader } else { AdminRole::Admin };
    Ok(Admin { id, created_at, name, role, key_expires_at: row.take()? })
}
