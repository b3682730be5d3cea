//! Idempotency keys: a repeated request of the same actor finds the record that the first one created.
//!
//! A key belongs to one request: with another one it is refused. It is forgotten after [`KEY_TIME`].

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;
use sindri_model::Checksum;

use super::session::{PipelinedQuery, Session, execute_batch, read_all};
use super::values::{Row, Value, row};
use crate::store::records::{KeyHolder, StoreError, WriteContext};

/// Time for which a key is remembered. Longer than an agent retries a report.
pub(crate) const KEY_TIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Actor and idempotency key of a request.
pub(crate) type RequestKey = (String, String);

/// A request that has an idempotency key.
pub(crate) struct IdempotentRequest {
    key: RequestKey,
    /// Type of the record that the request creates.
    resource_type: &'static str,
    /// Digest of everything that the request asks for.
    digest: String,
    time: Timestamp,
}

impl IdempotentRequest {
    /// Returns the request if it has an idempotency key. `content` is everything that the request asks for; it is
    /// evaluated only then.
    pub(crate) fn new(
        context: &WriteContext,
        resource_type: &'static str,
        content: impl FnOnce() -> Json,
    ) -> Option<Self> {
        let key = context.idempotency_key.clone()?;
        let actor = match context.actor {
            None => "system".to_owned(),
            Some(KeyHolder::Admin(admin)) => admin.to_string(),
            Some(KeyHolder::Agent(agent)) => agent.to_string(),
            Some(KeyHolder::Generator(generator)) => generator.to_string(),
        };
        let digest = Checksum::compute(&content().to_string()).as_str().to_owned();
        Some(Self { key: (actor, key), resource_type, digest, time: context.time })
    }

    /// Returns actor and key.
    pub(crate) fn key(&self) -> &RequestKey {
        &self.key
    }

    /// Returns the id of the record that the first request with this key created. Fails if that was another request.
    pub(crate) fn match_first(&self, first: &FirstRequest) -> Result<String, StoreError> {
        let has_same_content = first.digest.as_ref().is_none_or(|digest| *digest == self.digest);
        match first.resource.split_once(' ') {
            Some((created, id)) if created == self.resource_type && has_same_content => Ok(id.to_owned()),
            _ => Err(StoreError::IdempotencyKeyMismatch),
        }
    }

    /// Returns the request as the first with its key, which has created a record.
    pub(crate) fn to_first(&self, id: impl Display) -> FirstRequest {
        FirstRequest { resource: format!("{} {id}", self.resource_type), digest: Some(self.digest.clone()) }
    }

    fn to_row(&self, id: &str) -> Vec<Value> {
        let (actor, key) = &self.key;
        row![actor, key, format!("{} {id}", self.resource_type), self.time, &self.digest]
    }
}

/// The first request with a key.
pub(crate) struct FirstRequest {
    /// Type and id of the record that it created.
    resource: String,
    digest: Option<String>,
}

/// Returns the id of the record that an earlier request with this key created, if there was one.
pub(crate) async fn find_created(
    session: &mut dyn Session,
    request: Option<&IdempotentRequest>,
) -> Result<Option<String>, StoreError> {
    let Some(request) = request else { return Ok(None) };
    let rows = session.query_pipelined(vec![query_first(&[request])]).await?;
    let first = read_first(session, &[request], rows.into_iter().flatten().collect()).await?;
    first.get(request.key()).map(|first| request.match_first(first)).transpose()
}

/// Query for the first requests with the keys of these; [`read_first`] reads its rows.
pub(crate) fn query_first(requests: &[&IdempotentRequest]) -> PipelinedQuery {
    let sql = "WITH batch (actor, idempotency_key) AS ({TEXT, TEXT})
               SELECT requests.actor, requests.idempotency_key, requests.at, requests.resource, requests.request_digest
               FROM batch JOIN requests ON requests.actor = batch.actor
                 AND requests.idempotency_key = batch.idempotency_key";
    PipelinedQuery::Batch(sql, requests.iter().map(|request| row![&request.key.0, &request.key.1]).collect())
}

/// Reads the rows of [`query_first`], and deletes those whose keys have expired.
pub(crate) async fn read_first(
    session: &mut dyn Session,
    requests: &[&IdempotentRequest],
    rows: Vec<Row>,
) -> Result<BTreeMap<RequestKey, FirstRequest>, StoreError> {
    let oldest = requests.iter().filter_map(|request| request.time.checked_sub(KEY_TIME).ok()).min();
    let (mut first, mut expired) = (BTreeMap::new(), Vec::new());
    for (key, at, request) in read_all(rows, read)? {
        if oldest.is_some_and(|oldest| at < oldest) {
            expired.push(row![key.0, key.1]);
        } else {
            first.insert(key, request);
        }
    }
    let sql = "WITH batch (actor, idempotency_key) AS ({TEXT, TEXT})
               DELETE FROM requests WHERE (actor, idempotency_key) IN (SELECT actor, idempotency_key FROM batch)";
    execute_batch(session, sql, expired).await?;
    Ok(first)
}

/// Records what a request created, if it has an idempotency key.
pub(crate) async fn record(
    session: &mut dyn Session,
    request: Option<&IdempotentRequest>,
    id: impl ToString,
) -> Result<(), StoreError> {
    record_all(session, request.map(|request| (request, id.to_string())).into_iter().collect()).await
}

/// Records what each request created.
pub(crate) async fn record_all(
    session: &mut dyn Session,
    created: Vec<(&IdempotentRequest, String)>,
) -> Result<(), StoreError> {
    let sql = "WITH batch (actor, idempotency_key, resource, at, request_digest)
                 AS ({TEXT, TEXT, TEXT, BIGINT, TEXT})
               INSERT INTO requests (actor, idempotency_key, resource, at, request_digest) SELECT * FROM batch";
    execute_batch(session, sql, created.into_iter().map(|(request, id)| request.to_row(&id)).collect()).await
}

/// Rejects a repeated request whose response cannot be repeated, because it contained a secret.
pub(crate) async fn reject_repeated(
    session: &mut dyn Session,
    request: Option<&IdempotentRequest>,
) -> Result<(), StoreError> {
    match find_created(session, request).await? {
        Some(id) => Err(StoreError::IdempotencyKeyReused(id)),
        None => Ok(()),
    }
}

fn read(row: &mut Row) -> Result<(RequestKey, Timestamp, FirstRequest), StoreError> {
    let (key, at) = ((row.take()?, row.take()?), row.take()?);
    Ok((key, at, FirstRequest { resource: row.take()?, digest: row.take()? }))
}
