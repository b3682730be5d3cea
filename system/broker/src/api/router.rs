//! The router: the table of routes behind the layers that every request passes.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};

use super::http::authentication::authenticate;
use super::http::compression::compress;
use super::http::error_response::{no_method, no_route};
use super::http::request_log::log;
use super::http::route::Route;
use super::routes::{API, api_routes, open_routes};
use crate::broker::Broker;

/// Returns the whole API as a service.
pub fn router(broker: Broker) -> Router {
    let api = routed(api_routes()).route_layer(from_fn_with_state(broker.clone(), authenticate));
    routed(open_routes())
        .nest(API, api)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(broker.bounds.body_bytes_max))
        .layer(from_fn(compress))
        .layer(from_fn_with_state(broker.clone(), log))
        .with_state(broker)
}

fn routed(routes: Vec<Route>) -> Router<Broker> {
    routes.into_iter().map(Route::gated).fold(Router::new(), |router, (path, handler)| router.route(path, handler))
}
