//! Status of a stack: the conditions that each agent reports, and the state derived from them.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use sindri_model::limits::{
    CONDITION_MESSAGE_CHARS_MAX, CONDITION_REASON_CHARS_MAX, CONDITION_TYPE_CHARS_MAX, CONDITIONS_MAX,
};
use sindri_model::wire::{AgentStackStatus, ReportedCondition, StackStatus, StackStatusReport};
use sindri_model::{AgentId, StackId};

use super::stack_state::derive_state;
use crate::api::http::authentication::Actor;
use crate::api::http::denial::Denial;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::response::NoContent;
use crate::broker::Broker;
use crate::store::{StackReports, WriteContext};

pub(crate) async fn report(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((agent, stack)): PathParams<(AgentId, StackId)>,
    context: WriteContext,
    JsonBody(report): JsonBody<StackStatusReport>,
) -> Result<NoContent, ErrorResponse> {
    actor.check_agent(agent)?;
    check_conditions(&report.conditions)?;
    broker.store.record_stack_status(context, agent, stack, report).await?;
    Ok(NoContent)
}

pub(crate) async fn read_report(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams((agent, stack)): PathParams<(AgentId, StackId)>,
) -> Result<Json<StackStatusReport>, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    Ok(Json(broker.store.get_stack_report(agent, stack).await?))
}

/// Checks the limits of a report. Longer texts are rejected instead of truncated, because a truncated sentence may be misleading.
fn check_conditions(conditions: &[ReportedCondition]) -> Result<(), ErrorResponse> {
    let invalid = |message: String| Err(ErrorResponse::bad_request("invalid_status", message));
    if conditions.len() > CONDITIONS_MAX {
        return invalid(format!("a report must have at most {CONDITIONS_MAX} conditions"));
    }
    let mut seen = BTreeSet::new();
    for condition in conditions {
        let kind = &condition.kind;
        if kind.is_empty()
            || is_longer(kind, CONDITION_TYPE_CHARS_MAX)
            || !kind.chars().all(|char| char.is_ascii_alphanumeric())
        {
            return invalid(format!(
                "the type of a condition must have 1 to {CONDITION_TYPE_CHARS_MAX} letters and digits"
            ));
        }
        if !seen.insert(kind) {
            return invalid(format!("condition {kind} is reported twice"));
        }
        if is_longer(&condition.reason, CONDITION_REASON_CHARS_MAX) {
            return invalid(format!(
                "the reason of condition {kind} has more than {CONDITION_REASON_CHARS_MAX} characters"
            ));
        }
        if is_longer(&condition.message, CONDITION_MESSAGE_CHARS_MAX) {
            return invalid(format!(
                "the message of condition {kind} has more than {CONDITION_MESSAGE_CHARS_MAX} characters"
            ));
        }
    }
    Ok(())
}

fn is_longer(text: &str, chars_max: usize) -> bool {
    text.chars().count() > chars_max
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(stack): PathParams<StackId>,
    params: ListParams,
    permit: LargeList,
) -> Result<LargeListResponse<StackStatus>, ErrorResponse> {
    let StackReports { generator, newest, assignments, agents } =
        broker.store.get_stack_reports(stack, params.page()).await?;
    actor.check_admin_or_generator(generator, Denial::StackNotOwned)?;
    let (deployment_object_id, sequence_id) = (newest.map(|newest| newest.id), newest.map(|newest| newest.sequence));
    let state = derive_state(newest, &assignments);
    let page = params.respond_sized(agents, |status| status.agent_id, conditions_bytes);
    let to_body = |agents| StackStatus { stack_id: stack, deployment_object_id, sequence_id, state, agents };
    permit.serialize(&broker, page.map(to_body)).await
}

/// Returns the size of the conditions as they are stored.
fn conditions_bytes(status: &AgentStackStatus) -> usize {
    serde_json::to_string(&status.conditions).map_or(0, |conditions| conditions.len())
}
