//! The same request, sent again: the same key of the same actor finds what the first one made.

use super::session::{Session, change, one, only, values};
use crate::store::{KeyHolder, Stamp, StoreError};

/// What an earlier request with this key made, if there was one: its id.
pub(super) async fn made_before(
    session: &mut dyn Session,
    stamp: &Stamp,
    what: &'static str,
) -> Result<Option<String>, StoreError> {
    let Some(key) = &stamp.idempotency_key else { return Ok(None) };
    let sql = "SELECT resource FROM requests WHERE actor = ?1 AND idempotency_key = ?2";
    let Some(resource): Option<String> = one(session, sql, values![actor(stamp), key], only).await? else {
        return Ok(None);
    };
    match resource.split_once(' ') {
        Some((kind, id)) if kind == what => Ok(Some(id.to_owned())),
        _ => Err(StoreError::KeyReused(resource)),
    }
}

/// Remembers what a request with a key made.
pub(super) async fn remember(
    session: &mut dyn Session,
    stamp: &Stamp,
    what: &'static str,
    id: impl ToString,
) -> Result<(), StoreError> {
    let Some(key) = &stamp.idempotency_key else { return Ok(()) };
    let sql = "INSERT INTO requests (actor, idempotency_key, resource, at) VALUES (?1, ?2, ?3, ?4)";
    change(session, sql, values![actor(stamp), key, format!("{what} {}", id.to_string()), stamp.at]).await?;
    Ok(())
}

/// For what cannot be answered a second time, because a secret was shown with it.
pub(super) async fn refuse_again(
    session: &mut dyn Session,
    stamp: &Stamp,
    what: &'static str,
) -> Result<(), StoreError> {
    match made_before(session, stamp, what).await? {
        Some(id) => Err(StoreError::KeyReused(format!("{what} {id}"))),
        None => Ok(()),
    }
}

fn actor(stamp: &Stamp) -> String {
    match stamp.actor {
        None => "system".to_owned(),
        Some(KeyHolder::Admin) => "admin".to_owned(),
        Some(KeyHolder::Agent(agent)) => agent.to_string(),
        Some(KeyHolder::Generator(generator)) => generator.to_string(),
    }
}
