//! Which stacks go to an agent, and the target state that it polls.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::IF_NONE_MATCH;
use http::{HeaderMap, StatusCode};
use sindri_model::wire::{AgentTarget, EPOCH_HEADER, NewAgentTarget};
use sindri_model::{AgentId, LinkId, RevisionId, StackId};

use super::actor::Actor;
use super::answer::Refusal;
use super::extract::{Body, Ids};
use super::stacks::owned;
use crate::Broker;
use crate::etags::Etag;
use crate::store::KeyHolder;

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
) -> Result<Json<Vec<AgentTarget>>, Refusal> {
    actor.admin_or_this_agent(agent)?;
    Ok(Json(broker.store.targets(agent).await?))
}

pub(crate) async fn add(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    Body(request): Body<NewAgentTarget>,
) -> Result<(StatusCode, Json<AgentTarget>), Refusal> {
    actor.admin_or_generator()?;
    if request.agent_id != agent {
        return Err(mismatch());
    }
    owned(&broker, actor, request.stack_id).await?;
    let target = AgentTarget { id: LinkId::mint(&broker.entropy), agent_id: agent, stack_id: request.stack_id };
    let added = broker.store.add_target(target.clone()).await;
    broker.etags.forget();
    added?;
    Ok((StatusCode::CREATED, Json(target)))
}

pub(crate) async fn remove(
    State(broker): State<Broker>,
    actor: Actor,
    Ids((agent, stack)): Ids<(AgentId, StackId)>,
) -> Result<StatusCode, Refusal> {
    owned(&broker, actor, stack).await?;
    let removal = RevisionId::mint(&broker.entropy);
    let removed = broker.store.remove_target(agent, stack, removal, broker.clock.now()).await;
    broker.etags.forget();
    removed?;
    Ok(StatusCode::NO_CONTENT)
}

/// The body names another agent than the path.
pub(crate) fn mismatch() -> Refusal {
    Refusal::bad("agent_id_mismatch", "agent_id in the body is not the agent of the path")
}

/// The full desired set. What the agent receives with it is durable before the answer leaves; when the
/// administrator looks, the agent receives nothing.
pub(crate) async fn target_state(
    State(broker): State<Broker>,
    actor: Actor,
    Ids(agent): Ids<AgentId>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    actor.admin_or_this_agent(agent)?;
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Some(etag) = broker.etags.of(agent)
        && etag.is_in(known)
    {
        return Ok(unchanged(&etag));
    }
    let asked = broker.etags.generation();
    let desired = match actor.0 {
        KeyHolder::Agent(_) => broker.store.hand_out(agent).await?,
        KeyHolder::Admin | KeyHolder::Generator(_) => broker.store.desired_set(agent).await?,
    };
    let etag = Etag::of(&desired);
    broker.etags.remember(agent, etag.clone(), asked);
    if etag.is_in(known) {
        return Ok(unchanged(&etag));
    }
    Ok((identity(&etag), Json(desired.objects)).into_response())
}

fn unchanged(etag: &Etag) -> Response {
    (StatusCode::NOT_MODIFIED, identity(etag)).into_response()
}

fn identity(etag: &Etag) -> [(&'static str, String); 2] {
    [("etag", etag.text.clone()), (EPOCH_HEADER, etag.epoch.to_string())]
}
