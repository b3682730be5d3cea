//! Revisions of stacks: submitted as JSON or as plain YAML, and immutable. Agents report the errors of their objects in events.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use sindri_model::wire::{CreateDeploymentObjectRequest, DeploymentObject};
use sindri_model::{RevisionId, StackId};

use super::bundle_text::{INVALID, check_text, is_large, stored_bytes_max};
use super::quota_checks::{check_new_revision, count_submission};
use super::stack_access::load_owned_stack;
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::describe::{DescribeRequest, Operation};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{
    JsonBody, Parsing, PathParams, QueryParams, media_type, parse_body, read_body, unsupported_media_type,
};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::Created;
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::{KeyHolder, NewRevision};

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
        let (media, parsing) = (media_type(request.headers()), Parsing::requested(request.headers())?);
        let body = read_body(request, broker).await?;
        match media.as_str() {
            "application/json" => parse_body(broker, body, parsing).await.map(Self),
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
    CreateContext(mut context): CreateContext,
    Submission(mut request): Submission,
) -> Result<Created<DeploymentObject>, ErrorResponse> {
    count_submission(&broker, actor)?;
    // The time of submission is the time at which the whole body has arrived.
    context.time = broker.clock.now();
    request.is_deletion_marker |= marker.deletion_marker;
    if is_large(&request.yaml_content) {
        // The store checks the owner too; without this check any key could cause the work of parsing.
        load_owned_stack(&broker, actor, stack).await?;
    }
    let yaml_content = check_text(&broker, request.yaml_content, request.is_deletion_marker).await?;
    check_new_revision(&broker, actor, yaml_content.len()).await?;
    let revision = NewRevision {
        id: RevisionId::generate_at(context.time, &broker.entropy),
        stack,
        yaml_content,
        is_deletion_marker: request.is_deletion_marker,
    };
    Ok(Created(broker.store.append_revision(context, revision).await?))
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
    permit: LargeList,
) -> Result<LargeListResponse<Vec<DeploymentObject>>, ErrorResponse> {
    load_owned_stack(&broker, actor, stack).await?;
    let revisions = match content {
        true => broker.store.list_revisions(stack, params.page()).await?,
        false => broker.store.list_revisions_without_content(stack, params.page()).await?,
    };
    permit.serialize(&broker, params.respond_sized(revisions, |revision| revision.id, stored_bytes_max)).await
}

/// Returns a revision. An agent may read those of stacks that are or were assigned to it, a generator those of its stacks.
pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(revision): PathParams<RevisionId>,
) -> Result<Json<DeploymentObject>, ErrorResponse> {
    let record = broker.store.get_revision(revision).await?;
    let (is_allowed, denial) = match actor.holder {
        KeyHolder::Admin(_) => (true, Denial::AdminRequired),
        KeyHolder::Generator(generator) => (generator == record.generator, Denial::GeneratorNotAssociated),
        KeyHolder::Agent(agent) => {
            let is_assigned = record.only_for.is_none_or(|only| only == agent)
                && broker.store.is_assigned(agent, record.revision.stack_id).await?;
            (is_assigned, Denial::AgentNotAssociated)
        }
    };
    if is_allowed { Ok(Json(record.revision)) } else { Err(denial.into()) }
}
