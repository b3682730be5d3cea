//! Revisions of stacks: submitted as JSON or as plain YAML, and never changed.
//!
//! A text that is not YAML at all is accepted: what is wrong with a bundle is said by the agents, which know their
//! clusters, and whoever submits reads it in their events like every other failure. Refused is what no agent could
//! say anything useful about: a text without any document, which could only be taken for "nothing"; one that is beyond
//! the limits of the parser, which protect agents too; and one that cannot be stored.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use sindri_model::wire::{CreateDeploymentObjectRequest, DeploymentObject};
use sindri_model::yaml::holds_a_document;
use sindri_model::{RevisionId, StackId};

use super::stack_access::owned;
use crate::api::http::authentication::Actor;
use crate::api::http::describe::{Operation, Part};
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{self, Asked, Body, Ids, media_type, unsupported, whole_body};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::response::Created;
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::store::{KeyHolder, NewRevision};

const INVALID: &str = "invalid_deployment_object";

/// How plain YAML says what JSON says with a field.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Marker {
    /// Whether it tells agents to remove the stack.
    #[serde(default)]
    deletion_marker: bool,
}

/// A revision as it is sent: JSON, or the bundle itself.
pub(crate) struct Submission(CreateDeploymentObjectRequest);

impl FromRequest<Broker> for Submission {
    type Rejection = Refusal;

    async fn from_request(request: Request, broker: &Broker) -> Result<Self, Refusal> {
        let media = media_type(request.headers());
        let body = whole_body(request, broker).await?;
        match media.as_str() {
            "application/json" => extract::json(&body).map(Self),
            "application/yaml" | "text/yaml" | "application/x-yaml" => {
                let text = String::from_utf8(body.into());
                let yaml_content = text.map_err(|_| Refusal::bad(INVALID, "the YAML is not valid UTF-8"))?;
                Ok(Self(CreateDeploymentObjectRequest { yaml_content, is_deletion_marker: false }))
            }
            other => Err(unsupported(format!(
                "a deployment object is sent as application/json or application/yaml, not as {other}"
            ))),
        }
    }
}

impl Part for Submission {
    fn tell(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        Body::<CreateDeploymentObjectRequest>::tell(operation, schemas);
        if let Some(body) = &mut operation.body {
            body["content"]["application/yaml"] = json!({"schema": {"type": "string"}});
        }
    }
}

pub(crate) async fn submit(
    State(broker): State<Broker>,
    Ids(stack): Ids<StackId>,
    Asked(marker): Asked<Marker>,
    By(mut stamp): By,
    Submission(mut request): Submission,
) -> Result<Created<DeploymentObject>, Refusal> {
    // What is large or comes slowly counts from when all of it is there.
    stamp.at = broker.clock.now();
    request.is_deletion_marker |= marker.deletion_marker;
    check(&request)?;
    let revision = NewRevision {
        id: RevisionId::mint_at(stamp.at, &broker.entropy),
        stack,
        yaml_content: request.yaml_content,
        is_deletion_marker: request.is_deletion_marker,
    };
    Ok(Created(broker.store.append_revision(stamp, revision).await?))
}

fn check(request: &CreateDeploymentObjectRequest) -> Result<(), Refusal> {
    if request.yaml_content.contains('\0') {
        return Err(Refusal::bad(INVALID, "the YAML holds a NUL character"));
    }
    match holds_a_document(&request.yaml_content) {
        Ok(false) if !request.is_deletion_marker => Err(Refusal::bad(INVALID, "the YAML holds no document")),
        Ok(_) => Ok(()),
        Err(error) => Err(Refusal::bad(INVALID, error.to_string())),
    }
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
    paged: Paged,
) -> Result<Listed<Vec<DeploymentObject>>, Refusal> {
    owned(&broker, actor, stack).await?;
    let revisions = broker.store.list_revisions(stack, paged.page()).await?;
    Ok(paged.listed(revisions, |revision| revision.id))
}

/// An agent reads what was ever its business, a generator what belongs to its stacks.
pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(revision): Ids<RevisionId>,
) -> Result<Json<DeploymentObject>, Refusal> {
    let record = broker.store.get_revision(revision).await?;
    let allowed = match actor.0 {
        KeyHolder::Admin => true,
        KeyHolder::Generator(generator) => generator == record.generator,
        KeyHolder::Agent(agent) => {
            record.only_for.is_none_or(|only| only == agent)
                && broker.store.is_assigned(agent, record.revision.stack_id).await?
        }
    };
    if allowed { Ok(Json(record.revision)) } else { Err(Refusal::forbidden()) }
}
