//! Around every request: its name, what is counted of it, and one line when it is answered.
//!
//! Fixed fields in a fixed order, the route and not the path, no times: the lines of two equal runs are equal.
//! What changes something or is refused is news; a read that succeeds, an idle poll above all, is for debugging.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::CONNECTION;
use http::{HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use super::authentication::ActorLabel;
use super::connection_info::BodyTimeoutFlag;
use super::error_response::Refusal;
use crate::broker::Broker;
use crate::metrics::Metrics;
use crate::request_id::{REQUEST_ID, in_request};

pub(crate) async fn log(State(broker): State<Broker>, request: Request, next: Next) -> Response {
    let id = broker.request_ids.of(request.headers());
    let mut response = in_request(id.clone(), answer(&broker.metrics, request, next)).await;
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

async fn answer(metrics: &Metrics, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let body_timeout = request.extensions().get::<BodyTimeoutFlag>().cloned();
    let mut response = next.run(request).await;
    if body_timeout.is_some_and(|flag| flag.is_set()) {
        response = body_timeout_response();
    }
    let route = matched.as_ref().map(MatchedPath::as_str);
    metrics.request(&method, route, response.status(), began.elapsed());
    write(&method, route.unwrap_or("-"), &response);
    response
}

pub(crate) fn write(method: &Method, route: &str, response: &Response) {
    let status = response.status();
    let actor = response.extensions().get::<ActorLabel>().map_or("-", |label| &label.0);
    if is_news(method, status) {
        tracing::info!(%method, route, status = status.as_u16(), actor, "request");
    } else {
        tracing::debug!(%method, route, status = status.as_u16(), actor, "request");
    }
}

fn is_news(method: &Method, status: StatusCode) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    !(is_read && (status.is_success() || status == StatusCode::NOT_MODIFIED))
}

/// Whatever the handler made of the body's end: what is left of it is not waited for.
fn body_timeout_response() -> Response {
    let refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body did not arrive in time");
    let mut response = refusal.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
