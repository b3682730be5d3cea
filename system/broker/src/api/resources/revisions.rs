//! Revisions of stacks: submitted as JSON or as plain YAML, and immutable.
//!
//! The broker rejects a text that is not YAML, a text without any document, a text above the limits of the parser, and a
//! text that cannot be stored. Agents validate the objects of a bundle, because they know their clusters, and report the
//! errors in their events.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;
use sindri_model::wire::{CreateDeploymentObjectRequest, DeploymentObject};
use sindri_model::yaml::{YamlError, parse_documents};
use sindri_model::{RevisionId, StackId};

use super::quota_checks::{check_new_revision, count_submission};
use super::stack_access::load_owned_stack;
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::describe::{DescribeRequest, Operation};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{
    JsonBody, LARGE_BYTES, Parsing, PathParams, QueryParams, media_type, parse_body, read_body, unsupported_media_type,
};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::Created;
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::store::{KeyHolder, NewRevision};

const INVALID: &str = "invalid_deployment_object";

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
    // A large bundle is parsed on another thread, and only for the owner of the stack.
    let request = if request.yaml_content.len() < LARGE_BYTES {
        check_request(&request).map(|()| request)?
    } else {
        // The store checks the owner too; without this check any key could cause the work of parsing.
        load_owned_stack(&broker, actor, stack).await?;
        let checked = broker.offload.run(move || check_request(&request).map(|()| request)).await;
        checked.ok_or_else(|| ErrorResponse::bad_request(INVALID, "the YAML cannot be parsed"))??
    };
    check_new_revision(&broker, actor, request.yaml_content.len()).await?;
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
    match parse_documents(&request.yaml_content) {
        Ok(documents) if documents.is_empty() && !request.is_deletion_marker => {
            Err(ErrorResponse::bad_request(INVALID, "the YAML contains no document"))
        }
        Ok(_) => Ok(()),
        Err(errors) => Err(ErrorResponse::bad_request(INVALID, describe_errors(&errors))),
    }
}

/// Limit on the invalid documents that an error names.
const ERRORS_MAX: usize = 10;

/// Returns the errors of invalid documents, each with its line and column; of a text above a limit only that.
fn describe_errors(errors: &[YamlError]) -> String {
    if let Some(limit) = errors.iter().find(|error| error.is_limit) {
        return limit.to_string();
    }
    let named: Vec<String> = errors.iter().take(ERRORS_MAX).map(YamlError::to_string).collect();
    let rest = errors.len() - named.len();
    let more = if rest == 0 { String::new() } else { format!("; and {rest} more invalid documents") };
    format!("the text is not valid YAML: {}{more}", named.join("; "))
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
    permit
        .serialize(
            &broker,
            params.respond_sized(revisions, |revision| revision.id, |revision| revision.yaml_content.len()),
        )
        .await
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
