//! The layer around the others, behind that which finds the client: sets the request id, counts the request, and writes one log
//! line per response.
//!
//! The line has fixed fields in a fixed order, the route instead of the path, and no times, so that two equal runs log
//! equal lines. The address of the client is left out where there is none, as in the simulation. Writes and errors are logged at
//! level info; reads that succeed, such as idle polls, at level debug.

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::CONNECTION;
use http::{HeaderValue, Method, StatusCode};
use sindri_traces::{REQUEST_ID, RequestContext, SPANS, scope, start_span};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::authentication::{ActorLabel, client_address};
use super::connection_info::BodyTimeoutFlag;
use super::error_response::ErrorResponse;
use crate::broker::Broker;
use crate::metrics::{Metrics, method_label};

/// Runs a request with its id, counts it and logs its response.
pub(crate) async fn log_request(State(broker): State<Broker>, request: Request, next: Next) -> Response {
    let context = broker.request_ids.read_context(request.headers());
    let (id, span) = (context.id.clone(), create_span(&request, &context));
    start_span(&span, &context);
    let mut response = scope(context, respond(&broker.metrics, request, next).instrument(span.clone())).await;
    record_in_span(&span, &response);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Creates the span of a request: of one that changes something, or that is part of a client's trace. Others, such as the
/// polls of a fleet, are too many.
fn create_span(request: &Request, context: &RequestContext) -> Span {
    let method = request.method();
    if method.is_safe() && context.traceparent.is_none() {
        return Span::none();
    }
    let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
    // A client can send any method: its text is not part of a name.
    let method = method_label(method);
    tracing::trace_span!(
        target: SPANS,
        "request",
        otel.kind = "server",
        otel.name = format_args!("{method} {route}"),
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        request_id = context.id.to_str().unwrap_or_default(),
        actor = Empty,
    )
}

fn record_in_span(span: &Span, response: &Response) {
    if !span.is_disabled() {
        span.record("http.response.status_code", response.status().as_u16());
        span.record("actor", response.extensions().get::<ActorLabel>().map_or("-", |label| &label.0));
    }
}

async fn respond(metrics: &Metrics, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let (method, client) = (request.method().clone(), client_address(request.extensions()));
    let matched_path = request.extensions().get::<MatchedPath>().cloned();
    let body_timeout = request.extensions().get::<BodyTimeoutFlag>().cloned();
    let mut response = next.run(request).await;
    if body_timeout.is_some_and(|flag| flag.is_set()) {
        response = body_timeout_response();
    }
    let route = matched_path.as_ref().map(MatchedPath::as_str);
    record_response(metrics, (&method, route, client), start, &response);
    response
}

/// Counts a request and writes the log line of its response.
pub(crate) fn record_response(
    metrics: &Metrics,
    (method, route, client): (&Method, Option<&str>, Option<IpAddr>),
    start: Instant,
    response: &Response,
) {
    metrics.record_request(method, route, response.status(), start.elapsed());
    log_response(method, route.unwrap_or("-"), client, response);
}

/// Writes the log line of a response.
fn log_response(method: &Method, route: &str, client: Option<IpAddr>, response: &Response) {
    let (status, client) = (response.status(), client.map(tracing::field::display));
    let actor = response.extensions().get::<ActorLabel>().map_or("-", |label| &label.0);
    if is_logged_at_info(method, status) {
        tracing::info!(%method, route, status = status.as_u16(), actor, client, "request");
    } else {
        tracing::debug!(%method, route, status = status.as_u16(), actor, client, "request");
    }
}

fn is_logged_at_info(method: &Method, status: StatusCode) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    !(is_read && (status.is_success() || status == StatusCode::NOT_MODIFIED))
}

/// Returns the response that replaces the handler's if the body did not arrive in time. The connection is closed, because
/// the rest of the body is not read.
fn body_timeout_response() -> Response {
    let error = ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body did not arrive in time");
    let mut response = error.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Records the fields of spans.
    #[derive(Clone, Default)]
    struct Fields(Arc<Mutex<Vec<String>>>);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.lock().unwrap().push(format!("{}={value:?}", field.name()));
        }
    }

    impl Subscriber for Fields {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            span.record(&mut self.clone());
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {}

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    #[test]
    fn a_span_does_not_have_the_text_of_an_unknown_method() {
        let fields = Fields::default();
        tracing::subscriber::with_default(fields.clone(), || {
            for method in ["POST", "BREW"] {
                let mut request = Request::new(Body::empty());
                *request.method_mut() = Method::from_bytes(method.as_bytes()).unwrap();
                let context = RequestContext { id: HeaderValue::from_static("a"), traceparent: None };
                drop(create_span(&request, &context));
            }
        });
        let fields = fields.0.lock().unwrap().join(" ");
        assert!(fields.contains("otel.name=POST - http.request.method=\"POST\""), "{fields}");
        assert!(fields.contains("otel.name=other - http.request.method=\"other\""), "{fields}");
        assert!(!fields.contains("BREW"), "{fields}");
    }
}
