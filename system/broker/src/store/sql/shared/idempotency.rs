//! The same request, sent again: the same key of the same actor finds what the first one made.

use std::collections::BTreeMap;

use crate::store::records::{KeyHolder, Stamp, StoreError};
use crate::store::sql::shared::session::{Question, Row, Session, change_each, read_all, row};

/// Who asks with which key, if the request has one.
pub(crate) type Mark = (String, String);

/// What an earlier request with this key made, if there was one: its id.
pub(crate) async fn made_before(
    session: &mut dyn Session,
    stamp: &Stamp,
    what: &'static str,
) -> Result<Option<String>, StoreError> {
    let asked = session.query_together(vec![ask_made_before(&[stamp])]).await?;
    let mut made = read_made_before(asked.into_iter().flatten().collect())?;
    mark(stamp).and_then(|mark| made.remove(&mark)).map(|resource| id_of(&resource, what)).transpose()
}

/// Asks what earlier requests with the keys of these made.
pub(crate) fn ask_made_before(stamps: &[&Stamp]) -> Question {
    let sql = "WITH batch (actor, idempotency_key) AS ({TEXT, TEXT})
               SELECT requests.actor, requests.idempotency_key, requests.resource FROM batch
                 JOIN requests ON requests.actor = batch.actor
                   AND requests.idempotency_key = batch.idempotency_key";
    let rows = stamps.iter().filter_map(|stamp| mark(stamp)).map(|(actor, key)| row![actor, key]);
    Question::Each(sql, rows.collect())
}

pub(crate) fn read_made_before(rows: Vec<Row>) -> Result<BTreeMap<Mark, String>, StoreError> {
    let made = read_all(rows, |row| Ok(((row.take()?, row.take()?), row.take()?)))?;
    Ok(made.into_iter().collect())
}

/// The id of what was made, if it is what the request asks for now.
pub(crate) fn id_of(resource: &str, what: &'static str) -> Result<String, StoreError> {
    match resource.split_once(' ') {
        Some((kind, id)) if kind == what => Ok(id.to_owned()),
        _ => Err(StoreError::KeyReused(resource.to_owned())),
    }
}

/// Remembers what a request with a key made.
pub(crate) async fn remember(
    session: &mut dyn Session,
    stamp: &Stamp,
    what: &'static str,
    id: impl ToString,
) -> Result<(), StoreError> {
    remember_all(session, what, vec![(stamp, id.to_string())]).await
}

/// Remembers what each request with a key made.
pub(crate) async fn remember_all(
    session: &mut dyn Session,
    what: &'static str,
    made: Vec<(&Stamp, String)>,
) -> Result<(), StoreError> {
    let sql = "WITH batch (actor, idempotency_key, resource, at) AS ({TEXT, TEXT, TEXT, BIGINT})
               INSERT INTO requests (actor, idempotency_key, resource, at) SELECT * FROM batch";
    let rows = made.into_iter().filter_map(|(stamp, id)| {
        let (actor, key) = mark(stamp)?;
        Some(row![actor, key, format!("{what} {id}"), stamp.at])
    });
    change_each(session, sql, rows.collect()).await
}

/// For what cannot be answered a second time, because a secret was shown with it.
pub(crate) async fn refuse_again(
    session: &mut dyn Session,
    stamp: &Stamp,
    what: &'static str,
) -> Result<(), StoreError> {
    match made_before(session, stamp, what).await? {
        Some(id) => Err(StoreError::KeyReused(format!("{what} {id}"))),
        None => Ok(()),
    }
}

/// The mark of a request.
pub(crate) fn mark(stamp: &Stamp) -> Option<Mark> {
    let key = stamp.idempotency_key.clone()?;
    let actor = match stamp.actor {
        None => "system".to_owned(),
        Some(KeyHolder::Admin) => "admin".to_owned(),
        Some(KeyHolder::Agent(agent)) => agent.to_string(),
        Some(KeyHolder::Generator(generator)) => generator.to_string(),
    };
    Some((actor, key))
}
