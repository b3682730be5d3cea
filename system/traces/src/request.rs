//! The current request as a task-local value, instead of a tracing span: a request without log lines formats nothing.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::TraceContextExt;
use sindri_model::wire::SubmittingRequest;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::traceparent::Traceparent;

/// Header of requests and responses with the request id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Header of requests with their position in a trace.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// A request: its id, and its position in a trace if its sender has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestContext {
    /// Request id.
    pub id: HeaderValue,
    /// Position in a trace; without it the trace follows from the id.
    pub traceparent: Option<Traceparent>,
}

impl RequestContext {
    /// Returns the request that submitted a revision; `None` if its id is not valid in a header.
    pub fn from_origin(origin: &SubmittingRequest) -> Option<Self> {
        let id = HeaderValue::try_from(origin.id.as_str()).ok()?;
        Some(Self { id, traceparent: origin.traceparent.as_deref().and_then(Traceparent::parse) })
    }
}

/// Calls a function with the id of the current request; `None` outside of requests.
pub fn with_request_id<R>(read: impl FnOnce(Option<&str>) -> R) -> R {
    with_current(|request| read(request.and_then(|request| request.id.to_str().ok())))
}

/// Runs a future with this request as the current one.
pub fn scope<F: Future>(request: RequestContext, future: F) -> impl Future<Output = F::Output> {
    // No async function, which would have room for the future twice.
    CURRENT.scope(request, future)
}

/// Returns the current request as a revision that it submits has it.
pub fn current_origin() -> Option<SubmittingRequest> {
    with_current(|request| {
        let id = request?.id.to_str().ok()?.to_owned();
        Some(SubmittingRequest { id, traceparent: current_traceparent(request).map(|position| position.to_string()) })
    })
}

/// Adds the id of the current request, and its position in a trace, to the headers of a request to another process.
pub fn add_headers(headers: &mut HeaderMap) {
    with_current(|request| {
        let Some(request) = request else { return };
        headers.insert(REQUEST_ID, request.id.clone());
        let traceparent = current_traceparent(Some(request)).map(|position| position.to_string());
        if let Some(value) = traceparent.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(TRACEPARENT, value);
        }
    });
}

/// Returns the position of the current span, or without one that of the request.
fn current_traceparent(request: Option<&RequestContext>) -> Option<Traceparent> {
    let span = Span::current();
    let of_span = if span.is_disabled() { None } else { Traceparent::from_span(span.context().span().span_context()) };
    of_span.or_else(|| request?.traceparent)
}

fn with_current<R>(read: impl FnOnce(Option<&RequestContext>) -> R) -> R {
    let mut read = Some(read);
    let result = CURRENT.try_with(|request| read.take().map(|read| read(Some(request))));
    match result {
        Ok(Some(result)) => result,
        Ok(None) | Err(_) => read.take().expect("called at most once")(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_set_only_inside_of_its_scope() {
        let read_id = || with_request_id(|id| id.map(str::to_owned));
        let position = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let request = RequestContext { id: HeaderValue::from_static("a"), traceparent: Traceparent::parse(position) };
        let (inside, headers) = CURRENT.sync_scope(request, || {
            let mut headers = HeaderMap::new();
            add_headers(&mut headers);
            (read_id(), headers)
        });
        assert_eq!((inside.as_deref(), read_id()), (Some("a"), None));
        assert_eq!((&headers[REQUEST_ID], &headers[TRACEPARENT]), (&"a".parse().unwrap(), &position.parse().unwrap()));
        assert_eq!(current_origin(), None);
    }
}
