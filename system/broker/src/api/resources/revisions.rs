//! Revisions of stacks: submitted as JSON or as plain YAML, and immutable.
//!
//! A text that is not valid YAML is accepted: agents validate bundles, because they know their clusters, and report the
//! errors in their events. The broker rejects only a text without any document, a text above the limits of the parser,
//! and a text that cannot be stored.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use sindri_model::wire::{CreateDeploymentObjectRequest, DeploymentObject};
use sindri_model::yaml::has_document;
use sindri_model::{RevisionId, StackId};

use super::stack_access::load_owned_stack;
use crate::api::http::authentication::Actor;
use crate::api::http::describe::{DescribeRequest, Operation};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{
    JsonBody, PathParams, QueryParams, media_type, parse_json, read_body, unsupported_media_type,
};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::Created;
use crate::broker::Broker;
use crate::store::{KeyHolder, NewRevision, WriteContext};

const INVALID: &str = "invalid_deployment_object";
/// Size from which a bundle is parsed on another thread, and only for the owner of the stack.
const LARGE_BYTES: usize = 16 * 1024;

/// Query parameter for submissions in YAML, whose body has no field for it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct MarkerParam {
    /// True if the revision is a deletion marker, which tells agents to remove the stack.
    #[serde(default)]
    deletion_marker: bool,
}

/// Body of a submission: JSON, or the bundle itself as YAML.
pub(crate) struct Submission(CreateDeploymentObjectRequest);

impl FromRequest<Broker> for Submission {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, broker: &Broker) -> Result<Self, ErrorResponse> {
        let media = media_type(request.headers());
        let body = read_body(request, broker).await?;
        match media.as_str() {
            "application/json" => parse_json(&body).map(Self),
            "application/yaml" | "text/yaml" | "application/x-yaml" => {
                let text = String::from_utf8(body.into());
                let yaml_content =
                    text.map_err(|_| ErrorResponse::bad_request(INVALID, "the YAML is not valid UTF-8"))?;
                Ok(Self(CreateDeploymentObjectRequest { yaml_content, is_deletion_marker: false }))
            }
            other => Err(unsupported_media_type(format!(
                "a deployment object must be application/json or application/yaml, not {other}"
            ))),
        }
    }
}

impl DescribeRequest for Submission {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        JsonBody::<CreateDeploymentObjectRequest>::describe(operation, schemas);
        if let Some(body) = &mut operation.body {
            body["content"]["application/yaml"] = json!({"schema": {"type": "string"}});
        }
    }
}

pub(crate) async fn submit(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    QueryParams(marker): QueryParams<MarkerParam>,
    mut context: WriteContext,
    Submission(mut request): Submission,
) -> Result<Created<DeploymentObject>, ErrorResponse> {
    // The time of submission is the time at which the whole body has arrived.
    context.time = broker.clock.now();
    request.is_deletion_marker |= marker.deletion_marker;
    let request = if request.yaml_content.len() < LARGE_BYTES {
        check_request(&request).map(|()| request)?
    } else {
        // The store checks the owner too; without this check any key could cause the work of parsing.
        load_owned_stack(&broker, actor, stack).await?;
        let checked = broker.offload.run(move || check_request(&request).map(|()| request)).await;
        checked.ok_or_else(|| ErrorResponse::bad_request(INVALID, "the YAML cannot be parsed"))??
    };
    let revision = NewRevision {
        id: RevisionId::generate_at(context.time, &broker.entropy),
        stack,
        yaml_content: request.yaml_content,
        is_deletion_marker: request.is_deletion_marker,
    };
    Ok(Created(broker.store.append_revision(context, revision).await?))
}

fn check_request(request: &CreateDeploymentObjectRequest) -> Result<(), ErrorResponse> {
    if request.yaml_content.contains('\0') {
        return Err(ErrorResponse::bad_request(INVALID, "the YAML contains a NUL character"));
    }
    match has_document(&request.yaml_content) {
        Ok(false) if !request.is_deletion_marker => {
            Err(ErrorResponse::bad_request(INVALID, "the YAML contains no document"))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(ErrorResponse::bad_request(INVALID, error.to_string())),
    }
}

/// Query parameter that leaves the bundles out of a list.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ContentParam {
    /// False: `yaml_content` is empty.
    #[serde(default = "with_content")]
    content: bool,
}

fn with_content() -> bool {
    true
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    QueryParams(ContentParam { content }): QueryParams<ContentParam>,
    params: ListParams,
) -> Result<ListResponse<Vec<DeploymentObject>>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    let revisions = match content {
        true => broker.store.list_revisions(stack, params.page()).await?,
        false => broker.store.list_revisions_without_content(stack, params.page()).await?,
    };
    Ok(params.respond_sized(revisions, |revision| revision.id, |revision| revision.yaml_content.len()))
}

/// Returns a revision. An agent may read those of stacks that are or were assigned to it, a generator those of its stacks.
pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(revision): PathParams<RevisionId>,
) -> Result<Json<DeploymentObject>, ErrorResponse> {
    let record = broker.store.get_revision(revision).await?;
    let is_allowed = match actor.0 {
        KeyHolder::Admin => true,
        KeyHolder::Generator(generator) => generator == record.generator,
        KeyHolder::Agent(agent) => {
            record.only_for.is_none_or(|only| only == agent)
                && broker.store.is_assigned(agent, record.revision.stack_id).await?
        }
    };
    if is_allowed { Ok(Json(record.revision)) } else { Err(ErrorResponse::forbidden()) }
}
