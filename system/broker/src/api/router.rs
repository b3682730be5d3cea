//! The router: the table of routes behind the layers that every request passes.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};

use super::http::authentication::authenticate;
use super::http::compression::compress;
use super::http::connection_info::find_client;
use super::http::error_response::{method_not_allowed, route_not_found};
use super::http::request_log::log_request;
use super::http::route::Route;
use super::routes::{API, api_routes, public_routes};
use crate::broker::Broker;

/// Returns the whole API as a service.
pub fn router(broker: Broker) -> Router {
    let api = build_router(api_routes()).route_layer(from_fn_with_state(broker.clone(), authenticate));
    build_router(public_routes())
        .nest(API, api)
        .fallback(route_not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(broker.bounds.body_bytes_max))
        .layer(from_fn(compress))
        .layer(from_fn_with_state(broker.clone(), log_request))
        .layer(from_fn_with_state(broker.clone(), find_client))
        .with_state(broker)
}

fn build_router(routes: Vec<Route>) -> Router<Broker> {
    routes
        .into_iter()
        .map(Route::into_handler)
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
}
