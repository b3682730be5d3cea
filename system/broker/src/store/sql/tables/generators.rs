//! Rows of the table `generators`.

use sindri_model::GeneratorId;
use sindri_model::wire::Generator;

use crate::store::records::{Page, RecordKind, StoreError};
use crate::store::sql::shared::lookup::require;
use crate::store::sql::shared::session::{Session, fetch_all, fetch_one};
use crate::store::sql::shared::values::{Row, values};

/// A query of the columns that [`read`] reads; the argument is the rest of the statement.
macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, created_at, updated_at, deleted_at, name, description, is_active, is_system, last_active_at ",
            $rest
        )
    };
}

pub(crate) async fn list(session: &mut dyn Session, page: Page) -> Result<Vec<Generator>, StoreError> {
    let sql = columns!(
        "FROM generators WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL
          OR (name, id) > (SELECT name, id FROM generators WHERE id = ?1)) ORDER BY name, id LIMIT ?2"
    );
    fetch_all(session, sql, values![page.after, page.limit], read).await
}

pub(crate) async fn get(session: &mut dyn Session, generator: GeneratorId) -> Result<Generator, StoreError> {
    let sql = columns!("FROM generators WHERE id = ?1 AND deleted_at IS NULL");
    require(fetch_one(session, sql, values![generator], read).await?, RecordKind::Generator, generator)
}

fn read(row: &mut Row) -> Result<Generator, StoreError> {
    Ok(Generator {
        id: row.take()?,
        created_at: row.take()?,
        updated_at: row.take()?,
        deleted_at: row.take()?,
        name: row.take()?,
        description: row.take()?,
        is_active: row.take()?,
        is_system: row.take()?,
        last_active_at: row.take()?,
    })
}
