//! The id of the command's requests, and the export of their trace.

use http::HeaderValue;
use sindri_process::{Setting, TraceExport, VERSION, logs};
use sindri_traces::RequestContext;

use crate::failure::Failure;

/// Returns a request with a new id, which the log lines of the broker and of the agents have too.
pub(crate) fn new_request() -> RequestContext {
    let id = hex::encode(random_bytes());
    RequestContext { id: HeaderValue::try_from(id).expect("digits are valid in a header"), traceparent: None }
}

#[expect(clippy::disallowed_methods, reason = "the process owns entropy")]
fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    bytes
}

/// Starts the export of the command's trace, if a collector is set.
pub(crate) fn start_traces(endpoint: Option<&str>) -> Result<Option<TraceExport>, Failure> {
    let Some(endpoint) = endpoint else { return Ok(None) };
    let to_usage = |reason: String| Failure::Usage(format!("--otlp-endpoint: {reason}"));
    Setting::otlp_endpoint("otlp_endpoint").check(endpoint).map_err(to_usage)?;
    let traces = TraceExport::start(endpoint, "sindri", VERSION);
    let traces = traces.map_err(|error| Failure::Operation(error.to_string()))?;
    logs::init("off", "error", || None, Some(&traces));
    Ok(Some(traces))
}
