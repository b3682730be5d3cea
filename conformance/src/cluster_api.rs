//! Requests to an API server as a client other than the agent: one request, then status and JSON.

use std::time::Duration;

use http::{Request, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;
use sindri_cluster::Access;
use sindri_world::environment::ClusterCall;

use crate::runtime::InterruptibleRuntime;

/// User agent of all requests by scenarios.
const USER_AGENT: &str = "kubectl/scenario";
/// Timeout of a request.
const CALL_MAX: Duration = Duration::from_secs(30);
/// Maximum size of a response.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sends a request to a cluster and returns the status and the body. The error names the request.
pub fn send(runtime: &InterruptibleRuntime, access: &Access, call: ClusterCall) -> Result<(u16, Value), String> {
    let description = format!("{} {}{}", call.method, access.server, call.target);
    let response = runtime.block_on(CALL_MAX, exchange(access, call));
    response.map_err(|error| error.to_string()).flatten().map_err(|reason| format!("{description}: {reason}"))
}

/// Sends a request that must succeed and returns the body. The error has the server's message.
pub fn send_expecting_success(
    runtime: &InterruptibleRuntime,
    access: &Access,
    request: ClusterCall,
) -> Result<Value, String> {
    let description = format!("{} {}", request.method, request.target);
    match send(runtime, access, request)? {
        (status, body) if status < 300 => Ok(body),
        (status, body) => Err(format!("{description}: {status} {}", body["message"])),
    }
}

/// Uses a connection of its own: a connection must not outlive the `block_on` that drives it.
async fn exchange(access: &Access, call: ClusterCall) -> Result<(u16, Value), String> {
    let request = Request::builder()
        .method(call.method)
        .uri(call.target)
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, call.content_type)
        .body(Body::from(call.body))
        .map_err(|error| error.to_string())?;
    let client = access.connect().await.map_err(|error| error.to_string())?;
    let (head, body) = client.send(request).await.map_err(|error| error.to_string())?.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
    // Not every error response is JSON; then only the status counts.
    Ok((head.status.as_u16(), serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
}
