//! Spans of requests, and the ids of their traces.

use std::cell::Cell;

use opentelemetry::trace::{SpanId, TraceContextExt, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::request::{RequestContext, scope};
use crate::traceparent::trace_of_request;

/// Target of all spans that are exported.
pub const SPANS: &str = "sindri_spans";

thread_local! {
    /// Trace of the span that is being started, if it has no parent.
    static STARTED_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// Generator of random ids, except that the first span of a request gets the trace that follows from the request id.
#[derive(Debug, Default)]
pub struct TraceIds(RandomIdGenerator);

impl IdGenerator for TraceIds {
    fn new_trace_id(&self) -> TraceId {
        STARTED_TRACE.take().unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}

/// Starts a span as part of a request: below its position in a trace, or as the first span of the trace of its id. Does
/// nothing if the span is disabled.
pub fn start_span(span: &Span, request: &RequestContext) {
    if span.is_disabled() {
        return;
    }
    if let Some(parent) = request.traceparent {
        let context = opentelemetry::Context::new().with_remote_span_context(parent.to_span_context());
        // Fails only if the span has begun already, and then it has the parent with which it began.
        let _ = span.set_parent(context);
    } else {
        STARTED_TRACE.set(Some(trace_of_request(id_bytes(request))));
    }
    // Reading its context starts the span.
    let _ = span.context();
    STARTED_TRACE.set(None);
}

fn id_bytes(request: &RequestContext) -> &[u8] {
    request.id.as_bytes()
}

/// Runs a future as part of a request, if there is one: its id is in log lines and in requests to other processes, and the span
/// is part of its trace.
pub async fn run_in_request<F: Future>(
    request: Option<RequestContext>,
    create_span: impl FnOnce() -> Span,
    future: F,
) -> F::Output {
    let Some(request) = request else { return future.await };
    let span = create_span();
    start_span(&span, &request);
    scope(request, future.instrument(span)).await
}
