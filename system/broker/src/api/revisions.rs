//! Revisions of stacks: submitted as JSON or as plain YAML, and never changed.
//!
//! A text that is not YAML at all is accepted: what is wrong with a bundle is said by the agents, which know
//! their clusters. A text without any document is refused, because an agent could only take it for "nothing".

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use sindri_model::wire::{CreateDeploymentObjectRequest, DeploymentObject};
use sindri_model::yaml::parse_documents;
use sindri_model::{RevisionId, StackId};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Asked, Ids, Paged, json, unreadable};
use super::stacks::owned;
use super::stamp::By;
use crate::Broker;
use crate::store::{KeyHolder, NewRevision};

/// How plain YAML says what JSON says with a field.
#[derive(Deserialize)]
pub(crate) struct Marker {
    #[serde(default)]
    deletion_marker: bool,
}

pub(crate) async fn submit(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    Asked(marker): Asked<Marker>,
    By(stamp): By,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<DeploymentObject>), Refusal> {
    owned(&broker, actor, stack).await?;
    let mut request = read_submission(&headers, &body.map_err(unreadable)?)?;
    request.is_deletion_marker |= marker.deletion_marker;
    check(&request)?;
    let revision = NewRevision {
        id: RevisionId::mint(&broker.entropy),
        stack,
        yaml_content: request.yaml_content,
        is_deletion_marker: request.is_deletion_marker,
    };
    Ok((StatusCode::CREATED, Json(broker.store.append_revision(stamp, revision).await?)))
}

fn read_submission(headers: &HeaderMap, body: &Bytes) -> Result<CreateDeploymentObjectRequest, Refusal> {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("application/json");
    match header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => json(body),
        "application/yaml" | "text/yaml" | "application/x-yaml" => {
            let text = std::str::from_utf8(body)
                .map_err(|_| Refusal::bad("invalid_deployment_object", "the YAML is not valid UTF-8"))?;
            Ok(CreateDeploymentObjectRequest { yaml_content: text.to_owned(), is_deletion_marker: false })
        }
        other => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            format!("a deployment object is sent as application/json or application/yaml, not as {other}"),
        )),
    }
}

fn check(request: &CreateDeploymentObjectRequest) -> Result<(), Refusal> {
    let is_empty = parse_documents(&request.yaml_content).is_ok_and(|documents| documents.is_empty());
    if is_empty && !request.is_deletion_marker {
        return Err(Refusal::bad("invalid_deployment_object", "the YAML holds no document"));
    }
    Ok(())
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    Paged(page): Paged,
) -> Result<Json<Vec<DeploymentObject>>, Refusal> {
    owned(&broker, actor, stack).await?;
    Ok(Json(broker.store.revisions(stack, page).await?))
}

/// An agent reads what was ever its business, a generator what belongs to its stacks.
pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(revision): Ids<RevisionId>,
) -> Result<Json<DeploymentObject>, Refusal> {
    let record = broker.store.revision(revision).await?;
    let allowed = match actor.0 {
        KeyHolder::Admin => true,
        KeyHolder::Generator(generator) => generator == record.generator,
        KeyHolder::Agent(agent) => {
            record.only_for.is_none_or(|only| only == agent)
                && broker.store.concerns(agent, record.object.stack_id).await?
        }
    };
    if allowed { Ok(Json(record.object)) } else { Err(Refusal::forbidden()) }
}
