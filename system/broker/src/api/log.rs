//! One line per request, when it is answered.
//!
//! Fixed fields in a fixed order, the route and not the path, no times: the lines of two equal runs are equal.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::CONNECTION;
use http::{HeaderValue, StatusCode};

use super::actor::ActorLabel;
use super::answer::Refusal;
use crate::serve::BodyClock;

pub(crate) async fn log(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let clock = request.extensions().get::<BodyClock>().cloned();
    let mut response = next.run(request).await;
    if clock.is_some_and(|clock| clock.has_run_out()) {
        response = body_timeout();
    }
    let route = matched.as_ref().map_or("-", MatchedPath::as_str);
    let actor = response.extensions().get::<ActorLabel>().map_or("-", |label| &label.0);
    tracing::info!(%method, route, status = response.status().as_u16(), actor, "request");
    response
}

/// Whatever the handler made of the body's end: what is left of it is not waited for.
fn body_timeout() -> Response {
    let refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body did not arrive in time");
    let mut response = refusal.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
