//! The request that the current task serves: its id, which its log lines and further requests have, and its spans.
//!
//! A request begins with a command of `sindri`, or another client's call of the broker. The broker stores its id and its
//! position in the trace with the revision that it submits, and the agent continues both when it applies the revision.
//!
//! Spans are created at level trace with the target [`SPANS`]. While no process exports them, as in the simulation, they are
//! disabled and cost a comparison.

mod request;
mod spans;
mod traceparent;

pub use request::{REQUEST_ID, RequestContext, TRACEPARENT, add_headers, current_origin, scope, with_request_id};
pub use spans::{SPANS, TraceIds, run_in_request, start_span};
pub use traceparent::Traceparent;
