//! One line per request, when it is answered.
//!
//! Fixed fields in a fixed order, the route and not the path, no times: the lines of two equal runs are equal.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;

use super::actor::ActorLabel;

pub(crate) async fn log(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = matched.as_ref().map_or("-", MatchedPath::as_str);
    let actor = response.extensions().get::<ActorLabel>().map_or("-", |label| &label.0);
    tracing::info!(%method, route, status = response.status().as_u16(), actor, "request");
    response
}
