//! One request to the API server and its answer, with a deadline, a size limit and the retry policy.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;
use sindri_client::root_cause;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::discovery::Discovery;
use super::error::ClusterError;
use crate::retry::RetryPolicy;

const AGENT: &str = concat!("sindri-agent/", env!("CARGO_PKG_VERSION"));
/// From the first byte sent to the last byte received.
const DEADLINE: Duration = Duration::from_secs(60);
/// The same for a ping: a cluster that hangs does not hold up a heartbeat for longer.
const PING_DEADLINE: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A client of one cluster.
pub struct Cluster {
    client: kube::Client,
    policy: RetryPolicy,
    pub(super) discovery: Mutex<Discovery>,
}

/// What one call sends.
pub(super) struct Call {
    /// As it reads in an error: `apply ConfigMap shop/a`.
    pub operation: String,
    pub method: Method,
    pub path: String,
    pub accept: &'static str,
    pub content_type: &'static str,
    pub body: Bytes,
}

pub(super) const JSON: &str = "application/json";

impl Call {
    pub(super) fn get(operation: String, path: String) -> Self {
        Self { operation, method: Method::GET, path, accept: JSON, content_type: JSON, body: Bytes::new() }
    }

    pub(super) fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(super) fn malformed(&self, cause: impl Into<String>) -> ClusterError {
        ClusterError::Malformed { operation: self.operation.clone(), cause: cause.into() }
    }

    pub(super) fn unreachable(&self, cause: String) -> ClusterError {
        ClusterError::Unreachable { operation: self.operation.clone(), cause, attempts: 0 }
    }
}

impl Cluster {
    /// A cluster behind a client; see [`super::kube_client`].
    pub fn new(client: kube::Client, policy: RetryPolicy) -> Self {
        Self { client, policy, discovery: Mutex::new(Discovery::default()) }
    }

    /// Whether the server answers now, and how fast. Not retried: it is asked again with the next heartbeat.
    pub async fn ping(&self) -> Option<Duration> {
        let start = Instant::now();
        let call = Call::get("ask for the version".to_owned(), "/version".to_owned());
        self.once(&call, PING_DEADLINE).await.ok().map(|_| start.elapsed())
    }

    /// Sends a call by the retry policy; `Ok` is a JSON answer with a status below 400.
    pub(super) async fn send(&self, call: &Call) -> Result<Value, ClusterError> {
        self.send_for_status(call).await.map(|(_, answer)| answer)
    }

    /// The same, with the status.
    pub(super) async fn send_for_status(&self, call: &Call) -> Result<(StatusCode, Value), ClusterError> {
        let start = Instant::now();
        let mut failures = 0;
        // Every wait is at least the first one of the policy, so its time limit bounds the number of attempts.
        loop {
            let error = match self.once(call, DEADLINE).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let Some(retry) = error.retry() else { return Err(error) };
            let Some(wait) = self.policy.wait(failures, start.elapsed(), retry.after) else {
                return Err(error.given_up(failures));
            };
            tracing::info!("retry in {} s after: {error}", wait.as_secs());
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(&self, call: &Call, deadline: Duration) -> Result<(StatusCode, Value), ClusterError> {
        let answered = tokio::time::timeout(deadline, self.exchange(call)).await;
        answered.unwrap_or_else(|_| Err(call.unreachable(format!("no answer within {} s", deadline.as_secs()))))
    }

    /// Sends a call once and returns a body that is read as it comes.
    pub(super) async fn open(&self, call: &Call) -> Result<Body, ClusterError> {
        let answered = tokio::time::timeout(DEADLINE, self.answer(call)).await;
        let answered = answered.map_err(|_| call.unreachable(format!("no answer within {} s", DEADLINE.as_secs())))?;
        answered.map(|(_, body)| body)
    }

    async fn exchange(&self, call: &Call) -> Result<(StatusCode, Value), ClusterError> {
        let (status, body) = self.answer(call).await?;
        let body = whole(call, body).await?;
        let answer = serde_json::from_slice(&body).map_err(|error| call.malformed(error.to_string()))?;
        Ok((status, answer))
    }

    /// An answer with a status below 400, and its body.
    async fn answer(&self, call: &Call) -> Result<(StatusCode, Body), ClusterError> {
        let request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, call.accept)
            .header(CONTENT_TYPE, call.content_type)
            .body(Body::from(call.body.to_vec()))
            .map_err(|error| call.malformed(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|error| call.unreachable(root_cause(&error)))?;
        let (head, body) = response.into_parts();
        if head.status.as_u16() >= 400 {
            let (after, body) = (retry_after(&head.headers), whole(call, body).await?);
            return Err(ClusterError::refused(&call.operation, head.status.as_u16(), after, &body));
        }
        Ok((head.status, body))
    }
}

async fn whole(call: &Call, body: Body) -> Result<Bytes, ClusterError> {
    let collected = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    Ok(collected.map_err(|error| call.unreachable(root_cause(&*error)))?.to_bytes())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
