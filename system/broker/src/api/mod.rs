//! The HTTP API: which route leads where.
//!
//! Left out for now: templates, labels and annotations, webhooks, work orders, diagnostics, the audit log,
//! long polling, paging and the OpenAPI document.

mod actor;
mod agents;
mod answer;
mod events;
mod extract;
mod from_memory;
mod generators;
mod health;
mod log;
mod revisions;
mod stacks;
mod stamp;
mod target_state;
mod targets;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};

use crate::Broker;
pub(crate) use from_memory::{Remembered, from_memory};

/// The largest body that is accepted, unless the broker was made with another bound.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The whole API as a service.
pub fn router(broker: Broker) -> Router {
    let api = api().route_layer(from_fn_with_state(broker.clone(), actor::authenticate));
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .nest("/api/v1", api)
        .fallback(answer::no_route)
        .method_not_allowed_fallback(answer::no_method)
        .layer(DefaultBodyLimit::max(broker.bounds.body_bytes_max))
        .layer(from_fn_with_state(broker.clone(), log::log))
        .with_state(broker)
}

fn api() -> Router<Broker> {
    Router::new()
        .route("/auth/pak", post(agents::whoami))
        .route("/agents", get(agents::list).post(agents::create))
        // With the slash it is a search for one agent; existing agents find themselves with it.
        .route("/agents/", get(agents::find))
        .route("/agents/{id}", get(agents::read).put(agents::update).delete(agents::delete))
        .route("/agents/{id}/events", get(events::of_agent).post(events::record))
        .route("/agents/{id}/heartbeat", post(agents::heartbeat))
        .route("/agents/{id}/registrations", get(agents::registrations))
        .route("/agents/{id}/stacks", get(agents::stacks))
        .route("/agents/{id}/target-state", get(target_state::target_state))
        .route("/agents/{id}/targets", get(targets::list).post(targets::add))
        .route("/agents/{id}/targets/{stack_id}", delete(targets::remove))
        .route("/agent-events", get(events::list))
        .route("/agent-events/{id}", get(events::read))
        .route("/deployment-objects/{id}", get(revisions::read))
        .route("/generators", get(generators::list).post(generators::create))
        .route("/generators/{id}", get(generators::read))
        .route("/generators/{id}/register", post(generators::register).delete(generators::unregister))
        .route("/generators/{id}/registered-agents", get(generators::registered_agents))
        .route("/stacks", get(stacks::list).post(stacks::create))
        .route("/stacks/{id}", get(stacks::read).delete(stacks::delete))
        .route("/stacks/{id}/deployment-objects", get(revisions::list).post(revisions::submit))
}
