//! Epoch, origin and secret of the database.

use serde_json::json;
use sindri_model::Epoch;

use super::session::{Session, execute, failed, fetch_one, has_rows, single_column};
use super::values::values;
use super::{audit, changes, counter};
use crate::store::records::{StoreError, StorePosition, WriteContext};

const SECRET_BYTES: usize = 32;

pub(crate) async fn ping(session: &mut dyn Session) -> Result<(), StoreError> {
    has_rows(session, "SELECT 1 FROM meta", &[]).await.map(drop)
}

/// Returns the current epoch.
pub(crate) async fn current(session: &mut dyn Session) -> Result<Epoch, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = 'epoch'";
    let epoch = fetch_one(session, sql, &[], single_column).await?;
    epoch.map(Epoch).ok_or_else(|| failed("the table meta has no epoch"))
}

pub(crate) async fn position(session: &mut dyn Session) -> Result<StorePosition, StoreError> {
    let latest = counter::last_number(session).await?;
    Ok(StorePosition { epoch: current(session).await?, latest })
}

/// Every number of the new epoch is higher than any of the old one, including those that the backup does not contain.
pub(crate) async fn begin(
    session: &mut dyn Session,
    context: WriteContext,
    above: Epoch,
    reason: String,
) -> Result<StorePosition, StoreError> {
    counter::next_number(session).await?;
    if current(session).await? > above {
        // The restore was already detected by a poll of another agent or by another broker.
        return position(session).await;
    }
    let epoch = Epoch(above.0 + 1);
    execute(session, "UPDATE meta SET value = ?1 WHERE name = 'epoch'", values![epoch.0]).await?;
    execute(session, "UPDATE meta SET value = ?1 WHERE name = 'tick'", values![epoch.start()]).await?;
    let latest = changes::record_epoch_change(session).await?;
    // Every version moves into the new epoch, which invalidates everything that brokers and agents have cached.
    execute(session, "UPDATE versions SET version = ?1", values![latest]).await?;
    let details = json!({"epoch": epoch, "why": reason});
    audit::record(session, &context, "epoch.started", "database", None, Some(details)).await?;
    Ok(StorePosition { epoch, latest })
}

pub(crate) async fn record_origin(session: &mut dyn Session, origin: String) -> Result<bool, StoreError> {
    let sql = "SELECT value FROM facts WHERE name = 'origin'";
    let previous: Option<String> = fetch_one(session, sql, &[], single_column).await?;
    if previous.as_ref() == Some(&origin) {
        return Ok(false);
    }
    let sql = "INSERT INTO facts (name, value) VALUES ('origin', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1";
    execute(session, sql, values![origin]).await?;
    Ok(previous.is_some())
}

pub(crate) async fn get_or_create_secret(
    session: &mut dyn Session,
    context: WriteContext,
) -> Result<Vec<u8>, StoreError> {
    let secret: [u8; SECRET_BYTES] = context.entropy.bytes();
    let sql = "INSERT INTO secrets (name, value) VALUES ('etag', ?1) ON CONFLICT (name) DO NOTHING";
    execute(session, sql, values![secret.to_vec()]).await?;
    let stored = fetch_one(session, "SELECT value FROM secrets WHERE name = 'etag'", &[], single_column).await?;
    stored.ok_or_else(|| failed("the table secrets has no secret for ETags"))
}
