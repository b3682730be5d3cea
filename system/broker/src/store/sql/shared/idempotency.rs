//! Idempotency keys: a request with the same key of the same actor finds the record that the first one created.

use std::collections::BTreeMap;

use super::session::{PipelinedQuery, Session, execute_batch, read_all};
use super::values::{Row, row};
use crate::store::records::{KeyHolder, StoreError, WriteContext};

/// Actor and idempotency key of a request.
pub(crate) type RequestKey = (String, String);

/// Returns the id of the record that an earlier request with this key created, if there was one.
pub(crate) async fn find_created(
    session: &mut dyn Session,
    context: &WriteContext,
    resource_type: &'static str,
) -> Result<Option<String>, StoreError> {
    let rows = session.query_pipelined(vec![query_created(&[context])]).await?;
    let mut created = read_created(rows.into_iter().flatten().collect())?;
    let resource = request_key(context).and_then(|key| created.remove(&key));
    resource.map(|resource| parse_resource(&resource, resource_type)).transpose()
}

/// Query for the records that earlier requests with these keys created; [`read_created`] reads its rows.
pub(crate) fn query_created(contexts: &[&WriteContext]) -> PipelinedQuery {
    let sql = "WITH batch (actor, idempotency_key) AS ({TEXT, TEXT})
               SELECT requests.actor, requests.idempotency_key, requests.resource FROM batch
                 JOIN requests ON requests.actor = batch.actor
                   AND requests.idempotency_key = batch.idempotency_key";
    let rows = contexts.iter().filter_map(|context| request_key(context)).map(|(actor, key)| row![actor, key]);
    PipelinedQuery::Batch(sql, rows.collect())
}

/// Reads the rows of [`query_created`].
pub(crate) fn read_created(rows: Vec<Row>) -> Result<BTreeMap<RequestKey, String>, StoreError> {
    let created = read_all(rows, |row| Ok(((row.take()?, row.take()?), row.take()?)))?;
    Ok(created.into_iter().collect())
}

/// Returns the id in `TYPE ID`. Fails if the key was used for a record of another type.
pub(crate) fn parse_resource(resource: &str, resource_type: &'static str) -> Result<String, StoreError> {
    match resource.split_once(' ') {
        Some((created_type, id)) if created_type == resource_type => Ok(id.to_owned()),
        _ => Err(StoreError::IdempotencyKeyReused(resource.to_owned())),
    }
}

/// Records what a request created, if it has an idempotency key.
pub(crate) async fn record(
    session: &mut dyn Session,
    context: &WriteContext,
    resource_type: &'static str,
    id: impl ToString,
) -> Result<(), StoreError> {
    record_all(session, resource_type, vec![(context, id.to_string())]).await
}

/// Records what each request with an idempotency key created.
pub(crate) async fn record_all(
    session: &mut dyn Session,
    resource_type: &'static str,
    created: Vec<(&WriteContext, String)>,
) -> Result<(), StoreError> {
    let sql = "WITH batch (actor, idempotency_key, resource, at) AS ({TEXT, TEXT, TEXT, BIGINT})
               INSERT INTO requests (actor, idempotency_key, resource, at) SELECT * FROM batch";
    let rows = created.into_iter().filter_map(|(context, id)| {
        let (actor, key) = request_key(context)?;
        Some(row![actor, key, format!("{resource_type} {id}"), context.time])
    });
    execute_batch(session, sql, rows.collect()).await
}

/// Rejects a repeated request whose response cannot be repeated, because it contained a secret.
pub(crate) async fn reject_repeated(
    session: &mut dyn Session,
    context: &WriteContext,
    resource_type: &'static str,
) -> Result<(), StoreError> {
    match find_created(session, context, resource_type).await? {
        Some(id) => Err(StoreError::IdempotencyKeyReused(format!("{resource_type} {id}"))),
        None => Ok(()),
    }
}

/// Returns actor and key of a request that has an idempotency key.
pub(crate) fn request_key(context: &WriteContext) -> Option<RequestKey> {
    let key = context.idempotency_key.clone()?;
    let actor = match context.actor {
        None => "system".to_owned(),
        Some(KeyHolder::Admin) => "admin".to_owned(),
        Some(KeyHolder::Agent(agent)) => agent.to_string(),
        Some(KeyHolder::Generator(generator)) => generator.to_string(),
    };
    Some((actor, key))
}
