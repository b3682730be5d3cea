//! Asking an API server as someone else would: one request, status and JSON back.

use std::time::Duration;

use http::{Request, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;
use sindri_cluster::Access;
use sindri_world::environment::ClusterCall;

use crate::waiter::Waiter;

/// Nobody but the story itself asks a cluster under this name.
const SOMEONE_ELSE: &str = "kubectl/story";
/// The longest that a request may take.
const CALL_MAX: Duration = Duration::from_secs(30);
/// The largest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sends a request to a cluster; the error names the request.
pub fn call(waiter: &Waiter, access: &Access, call: ClusterCall) -> Result<(u16, Value), String> {
    let what = format!("{} {}{}", call.method, access.server, call.target);
    let answer = waiter.wait(CALL_MAX, exchange(access, call));
    answer.map_err(|cut| cut.to_string()).flatten().map_err(|reason| format!("{what}: {reason}"))
}

/// The same for a request that has to succeed: its answer, or what the server says against it.
pub fn carry_out(waiter: &Waiter, access: &Access, request: ClusterCall) -> Result<Value, String> {
    let what = format!("{} {}", request.method, request.target);
    match call(waiter, access, request)? {
        (status, answer) if status < 300 => Ok(answer),
        (status, answer) => Err(format!("{what}: {status} {}", answer["message"])),
    }
}

/// On a connection of its own, which must not outlive the wait in which it is driven.
async fn exchange(access: &Access, call: ClusterCall) -> Result<(u16, Value), String> {
    let request = Request::builder()
        .method(call.method)
        .uri(call.target)
        .header(header::USER_AGENT, SOMEONE_ELSE)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, call.content_type)
        .body(Body::from(call.body))
        .map_err(|error| error.to_string())?;
    let client = access.connect().await.map_err(|error| error.to_string())?;
    let (head, body) = client.send(request).await.map_err(|error| error.to_string())?.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
    // Not every refusal is JSON; its status tells what matters.
    Ok((head.status.as_u16(), serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
}
