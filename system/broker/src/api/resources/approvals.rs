//! Approvals of plans that agents hold. A generator reads and decides only those of its own stacks.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::limits::{DIGEST_CHARS, HOLD_REASON_CHARS_MAX, HOLD_REASONS_MAX, PLAN_BYTES_MAX};
use sindri_model::wire::{Approval, ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, ApprovalId, GeneratorId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams, QueryParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::broker::Broker;
use crate::store::{KeyHolder, WriteContext};

/// Lower than for other lists, because each approval may contain a whole plan.
const LIMIT_DEFAULT: i64 = 100;
const LIMIT_MAX: i64 = 1_000;

pub(crate) async fn request(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((agent, stack)): PathParams<(AgentId, StackId)>,
    context: WriteContext,
    JsonBody(request): JsonBody<ApprovalRequest>,
) -> Result<Json<Approval>, ErrorResponse> {
    actor.check_agent(agent)?;
    check_request(&request)?;
    Ok(Json(broker.store.request_approval(context, agent, stack, request).await?))
}

fn check_request(request: &ApprovalRequest) -> Result<(), ErrorResponse> {
    let invalid = |message: String| Err(ErrorResponse::bad_request("invalid_approval", message));
    let is_hex_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if request.digest.len() != DIGEST_CHARS || !request.digest.bytes().all(is_hex_digit) {
        return invalid(format!("digest must have {DIGEST_CHARS} hexadecimal digits in lower case"));
    }
    let is_long = |reason: &String| reason.chars().count() > HOLD_REASON_CHARS_MAX;
    if request.reasons.len() > HOLD_REASONS_MAX || request.reasons.iter().any(is_long) {
        return invalid(format!(
            "there must be at most {HOLD_REASONS_MAX} reasons of at most {HOLD_REASON_CHARS_MAX} characters"
        ));
    }
    // They would change how a terminal shows the lines around them to the person who decides.
    let is_control = |character: char| character.is_control() && !['\n', '\t'].contains(&character);
    if request.reasons.iter().chain([&request.plan]).any(|text| text.contains(is_control)) {
        return invalid("reasons and plan must have no control characters but newlines and tabs".to_owned());
    }
    if request.plan.len() > PLAN_BYTES_MAX {
        return invalid(format!("a plan must have at most {PLAN_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Filter of approvals.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ApprovalFilter {
    /// Only approvals in this state.
    state: Option<ApprovalState>,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    QueryParams(filter): QueryParams<ApprovalFilter>,
    params: ListParams<LIMIT_DEFAULT, LIMIT_MAX>,
    permit: LargeList,
) -> Result<LargeListResponse<Vec<Approval>>, ErrorResponse> {
    let approvals = broker.store.list_approvals(visible_generator(actor)?, filter.state, params.page()).await?;
    permit.serialize(&broker, params.respond_sized(approvals, |approval| approval.id, text_bytes)).await
}

/// Returns the size of the texts of an approval as they are stored.
fn text_bytes(approval: &Approval) -> usize {
    approval.plan.len() + serde_json::to_string(&approval.reasons).map_or(0, |reasons| reasons.len())
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(approval): PathParams<ApprovalId>,
) -> Result<Json<Approval>, ErrorResponse> {
    Ok(Json(broker.store.get_approval(approval, visible_generator(actor)?).await?))
}

pub(crate) async fn approve(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(approval): PathParams<ApprovalId>,
    context: WriteContext,
) -> Result<Json<Approval>, ErrorResponse> {
    decide(&broker, actor, context, approval, ApprovalState::Approved).await
}

pub(crate) async fn reject(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(approval): PathParams<ApprovalId>,
    context: WriteContext,
) -> Result<Json<Approval>, ErrorResponse> {
    decide(&broker, actor, context, approval, ApprovalState::Rejected).await
}

async fn decide(
    broker: &Broker,
    actor: Actor,
    context: WriteContext,
    approval: ApprovalId,
    decision: ApprovalState,
) -> Result<Json<Approval>, ErrorResponse> {
    Ok(Json(broker.store.decide_approval(context, approval, visible_generator(actor)?, decision).await?))
}

/// Returns the generator whose approvals the actor may read and decide; `None` means all. Approvals of other generators
/// are reported as not found.
fn visible_generator(actor: Actor) -> Result<Option<GeneratorId>, ErrorResponse> {
    match actor.holder {
        KeyHolder::Admin(_) => Ok(None),
        KeyHolder::Generator(generator) => Ok(Some(generator)),
        KeyHolder::Agent(_) => Err(Denial::Forbidden.into()),
    }
}
