//! Rows of the table `generators`.

use sindri_model::GeneratorId;
use sindri_model::wire::Generator;

use crate::store::records::{GeneratorUsage, Page, RecordKind, StoreError};
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
        "FROM generators WHERE id IN (
            SELECT id FROM (
              SELECT id, sum(bytes) OVER (ORDER BY name, id) - bytes AS bytes_before FROM (
                SELECT id, name, coalesce(octet_length(description), 0) AS bytes FROM generators
                WHERE deleted_at IS NULL AND (CAST(?1 AS TEXT) IS NULL
                  OR (name, id) > (SELECT name, id FROM generators WHERE id = ?1))
                ORDER BY name, id LIMIT ?2) AS candidates) AS sized
            WHERE bytes_before < ?3)
          ORDER BY name, id"
    );
    fetch_all(session, sql, values![page.after, page.limit, Page::TEXT_BYTES_MAX], read).await
}

pub(crate) async fn get(session: &mut dyn Session, generator: GeneratorId) -> Result<Generator, StoreError> {
    let sql = columns!("FROM generators WHERE id = ?1 AND deleted_at IS NULL");
    require(fetch_one(session, sql, values![generator], read).await?, RecordKind::Generator, generator)
}

/// Returns what a generator has in the store. The size of a text is known without reading it.
pub(crate) async fn get_usage(session: &mut dyn Session, generator: GeneratorId) -> Result<GeneratorUsage, StoreError> {
    let sql = "SELECT (SELECT count(*) FROM stacks WHERE generator_id = ?1 AND deleted_at IS NULL),
                 (SELECT CAST(coalesce(sum(octet_length(yaml_content)), 0) AS BIGINT) FROM revisions
                    JOIN stacks ON stacks.id = revisions.stack_id WHERE stacks.generator_id = ?1)";
    let (stacks, bytes): (i64, i64) =
        fetch_one(session, sql, values![generator], |row| Ok((row.take()?, row.take()?))).await?.unwrap_or_default();
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(GeneratorUsage { stacks: count(stacks), revision_bytes: count(bytes) })
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
