//! What agents hold back until somebody decides. A generator sees and decides about its own stacks only.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use sindri_model::wire::{Approval, ApprovalRequest, ApprovalState};
use sindri_model::{AgentId, ApprovalId, GeneratorId, StackId};

use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Asked, Body, Ids};
use crate::api::http::pagination::{Listed, Paged};
use crate::api::http::write_context::By;
use crate::broker::Broker;
use crate::store::{KeyHolder, WriteContext};

const DIGEST_CHARS: usize = 64;
const REASONS_MAX: usize = 32;
const REASON_CHARS_MAX: usize = 1_024;
const PLAN_BYTES_MAX: usize = 64 * 1_024;
/// Each may hold a whole plan.
const LIMIT_DEFAULT: i64 = 100;
const LIMIT_MAX: i64 = 1_000;

pub(crate) async fn propose(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((agent, stack)): Ids<(AgentId, StackId)>,
    By(stamp): By,
    Body(request): Body<ApprovalRequest>,
) -> Result<Json<Approval>, Refusal> {
    actor.this_agent(agent)?;
    check(&request)?;
    Ok(Json(broker.store.request_approval(stamp, agent, stack, request).await?))
}

fn check(request: &ApprovalRequest) -> Result<(), Refusal> {
    let wrong = |message: String| Err(Refusal::bad("invalid_approval", message));
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if request.digest.len() != DIGEST_CHARS || !request.digest.bytes().all(is_digit) {
        return wrong(format!("digest must have {DIGEST_CHARS} hexadecimal digits in lower case"));
    }
    let is_long = |reason: &String| reason.chars().count() > REASON_CHARS_MAX;
    if request.reasons.len() > REASONS_MAX || request.reasons.iter().any(is_long) {
        return wrong(format!("there are at most {REASONS_MAX} reasons of at most {REASON_CHARS_MAX} characters"));
    }
    if request.plan.len() > PLAN_BYTES_MAX {
        return wrong(format!("a plan has at most {PLAN_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Which approvals.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Which {
    /// Only those in this state.
    state: Option<ApprovalState>,
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Asked(which): Asked<Which>,
    paged: Paged<LIMIT_DEFAULT, LIMIT_MAX>,
) -> Result<Listed<Vec<Approval>>, Refusal> {
    let approvals = broker.store.list_approvals(owner(actor)?, which.state, paged.page()).await?;
    Ok(paged.listed(approvals, |approval| approval.id))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(approval): Ids<ApprovalId>,
) -> Result<Json<Approval>, Refusal> {
    Ok(Json(broker.store.get_approval(approval, owner(actor)?).await?))
}

pub(crate) async fn approve(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(approval): Ids<ApprovalId>,
    By(stamp): By,
) -> Result<Json<Approval>, Refusal> {
    decide(&broker, actor, stamp, approval, ApprovalState::Approved).await
}

pub(crate) async fn reject(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(approval): Ids<ApprovalId>,
    By(stamp): By,
) -> Result<Json<Approval>, Refusal> {
    decide(&broker, actor, stamp, approval, ApprovalState::Rejected).await
}

async fn decide(
    broker: &Broker,
    actor: Actor,
    stamp: WriteContext,
    approval: ApprovalId,
    decision: ApprovalState,
) -> Result<Json<Approval>, Refusal> {
    Ok(Json(broker.store.decide_approval(stamp, approval, owner(actor)?, decision).await?))
}

/// Whose stacks the actor decides about; nobody in particular means all of them. What belongs to others does not exist.
fn owner(actor: Actor) -> Result<Option<GeneratorId>, Refusal> {
    match actor.0 {
        KeyHolder::Admin => Ok(None),
        KeyHolder::Generator(generator) => Ok(Some(generator)),
        KeyHolder::Agent(_) => Err(Refusal::forbidden()),
    }
}
