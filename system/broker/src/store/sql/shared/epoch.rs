//! Epoch, origin and secret of the database.

use serde_json::json;
use sindri_model::Epoch;

use super::session::{Session, execute, failed, fetch_one, single_column};
use super::values::values;
use super::{audit, changes, counter};
use crate::store::records::{RestoreEvidence, StoreError, StorePosition, WriteContext};
use Comparison::{Replaced, Unchanged, Unrecorded};

const SECRET_BYTES: usize = 32;

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

/// The counter is locked before the comparison, so that of several brokers which notice the same replacement one begins
/// the epoch, and the others find it begun.
pub(crate) async fn record_origin(
    session: &mut dyn Session,
    context: WriteContext,
    evidence: RestoreEvidence,
) -> Result<Option<StorePosition>, StoreError> {
    if let Unchanged = compare(session, &evidence).await? {
        return Ok(None);
    }
    counter::next_number(session).await?;
    let comparison = compare(session, &evidence).await?;
    if let Some(origin) = evidence.origin {
        let sql = "INSERT INTO facts (name, value) VALUES ('origin', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1";
        execute(session, sql, values![origin]).await?;
    }
    let Replaced(reason) = comparison else { return Ok(None) };
    let above = current(session).await?.max(evidence.seen.epoch());
    begin(session, context, above, reason).await.map(Some)
}

/// Result of a comparison of the database with what is known of it.
enum Comparison {
    Unchanged,
    /// The server is recorded for the first time.
    Unrecorded,
    Replaced(String),
}

async fn compare(session: &mut dyn Session, evidence: &RestoreEvidence) -> Result<Comparison, StoreError> {
    let sql = "SELECT value FROM facts WHERE name = 'origin'";
    let recorded: Option<String> = fetch_one(session, sql, &[], single_column).await?;
    let latest = counter::last_number(session).await?;
    Ok(match (&evidence.origin, recorded) {
        _ if latest < evidence.seen => {
            Replaced(format!("the counter is at {latest}, and {} was committed before", evidence.seen))
        }
        (Some(now), Some(before)) if *now != before => {
            Replaced(format!("the database is now at {now}, not at {before}"))
        }
        (Some(_), None) => Unrecorded,
        (Some(_), Some(_)) | (None, _) => Unchanged,
    })
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
