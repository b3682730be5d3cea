//! How a stack is on each cluster: what its agent says, and what that means together.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{ReportedCondition, StackStatus, StackStatusReport};
use sindri_model::{AgentId, StackId};

use super::stack_state::state;
use crate::api::http::authentication::Actor;
use crate::api::http::error_response::Refusal;
use crate::api::http::extract::{Body, Ids};
use crate::api::http::response::NoContent;
use crate::api::http::write_context::By;
use crate::broker::Broker;

const CONDITIONS_MAX: usize = 16;
const TYPE_CHARS_MAX: usize = 64;
const REASON_CHARS_MAX: usize = 256;
const MESSAGE_CHARS_MAX: usize = 4_096;

pub(crate) async fn report(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((agent, stack)): Ids<(AgentId, StackId)>,
    By(stamp): By,
    Body(report): Body<StackStatusReport>,
) -> Result<NoContent, Refusal> {
    actor.this_agent(agent)?;
    check(&report.conditions)?;
    broker.store.record_stack_status(stamp, agent, stack, report).await?;
    Ok(NoContent)
}

/// Nothing is cut: half a sentence may say the opposite.
fn check(conditions: &[ReportedCondition]) -> Result<(), Refusal> {
    let wrong = |message: String| Err(Refusal::bad("invalid_status", message));
    if conditions.len() > CONDITIONS_MAX {
        return wrong(format!("a report has at most {CONDITIONS_MAX} conditions"));
    }
    let mut seen = BTreeSet::new();
    for condition in conditions {
        let kind = &condition.kind;
        if kind.is_empty() || is_longer(kind, TYPE_CHARS_MAX) || !kind.chars().all(|char| char.is_ascii_alphanumeric())
        {
            return wrong(format!("the type of a condition has 1 to {TYPE_CHARS_MAX} letters and digits"));
        }
        if !seen.insert(kind) {
            return wrong(format!("condition {kind} comes twice"));
        }
        if is_longer(&condition.reason, REASON_CHARS_MAX) {
            return wrong(format!("the reason of condition {kind} has more than {REASON_CHARS_MAX} characters"));
        }
        if is_longer(&condition.message, MESSAGE_CHARS_MAX) {
            return wrong(format!("the message of condition {kind} has more than {MESSAGE_CHARS_MAX} characters"));
        }
    }
    Ok(())
}

fn is_longer(text: &str, chars_max: usize) -> bool {
    text.chars().count() > chars_max
}

pub(crate) async fn of_stack(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(stack): Ids<StackId>,
) -> Result<Json<StackStatus>, Refusal> {
    let reports = broker.store.get_stack_reports(stack).await?;
    actor.admin_or_this_generator(reports.generator)?;
    Ok(Json(StackStatus {
        stack_id: stack,
        deployment_object_id: reports.newest.map(|newest| newest.id),
        sequence_id: reports.newest.map(|newest| newest.sequence),
        state: state(&reports),
        agents: reports.agents.into_iter().map(|report| report.status).collect(),
    }))
}
