//! The HTTP API: a table of routes, and what is around every request.
//!
//! Left out for now: templates, work orders, diagnostics.

mod actor;
mod agents;
mod answer;
mod approvals;
mod audit;
mod checks;
mod conditions;
mod deliveries;
mod describe;
mod events;
mod extract;
mod fleet;
mod from_memory;
mod generators;
mod gzip;
mod health;
mod keys;
mod labels;
mod listed;
mod log;
mod openapi;
mod policies;
mod revisions;
mod route;
mod routes;
mod stack_state;
mod stacks;
mod stamp;
mod status;
mod success;
mod target_state;
mod targets;
mod webhook_checks;
mod webhooks;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};

use crate::Broker;
pub(crate) use from_memory::{Remembered, from_memory};
use route::Route;

pub use openapi::document as openapi_document;

/// The largest body that is accepted, unless the broker was made with another bound.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Where the API is.
const API: &str = "/api/v1";

/// The whole API as a service.
pub fn router(broker: Broker) -> Router {
    let api = served(routes::api_routes()).route_layer(from_fn_with_state(broker.clone(), actor::authenticate));
    served(routes::open_routes())
        .nest(API, api)
        .fallback(answer::no_route)
        .method_not_allowed_fallback(answer::no_method)
        .layer(DefaultBodyLimit::max(broker.bounds.body_bytes_max))
        .layer(from_fn(gzip::compress))
        .layer(from_fn_with_state(broker.clone(), log::log))
        .with_state(broker)
}

fn served(routes: Vec<Route>) -> Router<Broker> {
    routes.into_iter().map(Route::gated).fold(Router::new(), |router, (path, handler)| router.route(path, handler))
}
