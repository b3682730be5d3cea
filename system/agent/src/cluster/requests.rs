//! One request to the API server and its response, with a timeout, a size limit, the retry policy and the write gate.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, USER_AGENT};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use kube::client::Body;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use sindri_client::root_cause;
use sindri_model::ObjectKey;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::connect::Sender;
use super::error::{ClusterError, FailedOperation};
use super::limits::Limits;
use super::retry::RetryPolicy;
use super::write_gate::WriteGate;
use crate::telemetry::metrics::Metrics;

const USER_AGENT_NAME: &str = concat!("sindri-agent/", env!("CARGO_PKG_VERSION"));
/// Reason why a request that waited is not sent.
const ENDED: &str = "the target state changed before it was sent";
/// Reason why the response of a write is not waited for.
const LOST_LEASE: &str = "the Lease could not be renewed before a response arrived";
/// Timeout from the first byte sent to the last byte received.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for a ping, so that an unresponsive cluster does not delay heartbeats for longer.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest response body.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sends requests to the API server of one cluster. Clones share everything except the limits of their own requests.
#[derive(Clone)]
pub(super) struct ApiClient {
    sender: Sender,
    retry_policy: RetryPolicy,
    metrics: Arc<Metrics>,
    limits: Limits,
    in_flight: Arc<Semaphore>,
    /// Absent without leader election: then every write is allowed.
    write_gate: Arc<OnceLock<WriteGate>>,
    /// Once cancelled, no request is sent any more; requests in flight end normally.
    pub(super) shutdown: CancellationToken,
    /// Time after which the caller no longer waits, neither for a response nor for a retry.
    pub(super) deadline: Option<Instant>,
    /// Once cancelled, failed requests are not retried any more; requests in flight end normally.
    pub(super) no_more_retries: CancellationToken,
    /// True if a request is retried when a webhook could not be called.
    pub(super) retries_webhooks: bool,
    /// User as which writes are sent; `None` for the agent itself.
    pub(super) impersonated_user: Option<Arc<str>>,
}

/// Description of a request for error messages, such as `apply ConfigMap shop/a`. Formatted only when an error occurs.
pub(super) enum Operation<'a> {
    /// A verb and the object that it is applied to.
    Object(&'static str, &'a ObjectKey),
    Other(String),
}

impl Operation<'_> {
    /// Returns the operation of an error.
    pub(super) fn to_failed(&self) -> FailedOperation {
        match self {
            Self::Object(verb, key) => FailedOperation::on_object(verb, key),
            Self::Other(text) => text.as_str().into(),
        }
    }

    /// Returns true if messages of the server may contain parts of a Secret, which no error and no log line shows.
    fn is_confidential(&self) -> bool {
        matches!(self, Self::Object(_, key) if key.group.is_empty() && key.kind == "Secret")
    }
}

/// One request.
pub(super) struct ApiRequest<'a> {
    pub operation: Operation<'a>,
    pub method: Method,
    pub path: String,
    pub accept: &'static str,
    pub content_type: &'static str,
    pub if_none_match: Option<String>,
    pub body: Bytes,
}

/// Response with a status below 400.
pub(super) struct ApiResponse {
    pub status: StatusCode,
    pub etag: Option<String>,
    /// JSON; empty if the status is 304.
    body: Bytes,
}

pub(super) const JSON: &str = "application/json";
/// Accept header for the metadata of an object.
pub(super) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
/// Accept header for the metadata of the objects of a list.
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// Header with the user as which the API server authorizes a request.
const IMPERSONATE_USER: &str = "impersonate-user";

impl<'a> ApiRequest<'a> {
    pub(super) fn new(operation: Operation<'a>, method: Method, path: String, body: Bytes) -> Self {
        let (accept, content_type) = (JSON, JSON);
        Self { operation, method, path, accept, content_type, if_none_match: None, body }
    }

    pub(super) fn get(operation: Operation<'a>, path: String) -> Self {
        Self::new(operation, Method::GET, path, Bytes::new())
    }

    pub(super) fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(super) fn malformed(&self, cause: impl Into<String>) -> ClusterError {
        ClusterError::Malformed { operation: self.operation.to_failed(), cause: cause.into() }
    }

    pub(super) fn unreachable(&self, cause: String) -> ClusterError {
        ClusterError::Unreachable { operation: self.operation.to_failed(), cause, attempts: 0 }
    }

    fn timed_out(&self, limit: Duration) -> ClusterError {
        self.unreachable(format!("no response within {} s", limit.as_secs()))
    }
}

impl ApiResponse {
    /// Deserializes the body.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self, request: &ApiRequest<'_>) -> Result<T, ClusterError> {
        serde_json::from_slice(&self.body).map_err(|error| request.malformed(error.to_string()))
    }
}

fn describe_closed_gate(gate: &WriteGate) -> String {
    let reason = gate.refusal().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("the Lease could not be renewed, and nothing may be written{reason}")
}

impl ApiClient {
    pub(super) fn new(sender: Sender, retry_policy: RetryPolicy, metrics: Arc<Metrics>, limits: Limits) -> Self {
        Self {
            sender,
            retry_policy,
            metrics,
            limits,
            in_flight: Arc::new(Semaphore::new(limits.requests_in_flight)),
            write_gate: Arc::default(),
            shutdown: CancellationToken::new(),
            deadline: None,
            no_more_retries: CancellationToken::new(),
            retries_webhooks: true,
            impersonated_user: None,
        }
    }

    /// Returns the time until the deadline.
    fn remaining_time(&self) -> Duration {
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Returns a client of the same cluster with its own limits, which is neither cancelled nor gated with this one.
    pub(super) fn independent(&self) -> Self {
        Self::new(self.sender.clone(), self.retry_policy, self.metrics.clone(), self.limits)
    }

    /// Sets the limits.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        (self.limits, self.in_flight) = (limits, Arc::new(Semaphore::new(limits.requests_in_flight)));
    }

    /// Returns the limits.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Counts requests in these metrics.
    pub(super) fn set_metrics(&mut self, metrics: Arc<Metrics>) {
        self.metrics = metrics;
    }

    /// Returns the write gate. From the first call on, writes wait until it is open.
    pub(super) fn write_gate(&self) -> &WriteGate {
        self.write_gate.get_or_init(WriteGate::default)
    }

    /// Waits until the write gate permits the request, or until shutdown. A request that had to wait is not sent if its retries
    /// have ended: another target state may want the contrary by now.
    async fn wait_for_write_gate(&self, request: &ApiRequest<'_>) -> Result<(), ClusterError> {
        let Some(gate) = self.gate_of(request).filter(|gate| !gate.is_open()) else { return Ok(()) };
        tokio::select! {
            biased; // what ends the wait comes first
            () = self.shutdown.cancelled() => Ok(()),
            () = self.no_more_retries.cancelled() => Err(request.unreachable(ENDED.to_owned())),
            opened = timeout(REQUEST_TIMEOUT, gate.wait_until_open()) => opened
                .map_err(|_| request.unreachable(describe_closed_gate(gate))),
        }
    }

    fn check_not_shutting_down(&self, request: &ApiRequest<'_>) -> Result<(), ClusterError> {
        if self.shutdown.is_cancelled() {
            return Err(ClusterError::ShuttingDown { operation: request.operation.to_failed() });
        }
        Ok(())
    }

    /// Returns the gate that the request must pass: reads need none.
    fn gate_of(&self, request: &ApiRequest<'_>) -> Option<&WriteGate> {
        self.write_gate.get().filter(|_| request.method != Method::GET)
    }

    /// Waits until fewer requests are in flight.
    async fn acquire_slot(&self, request: &ApiRequest<'_>) -> Result<SemaphorePermit<'_>, ClusterError> {
        if let Ok(slot) = self.in_flight.try_acquire() {
            return Ok(slot);
        }
        let acquired = tokio::select! {
            biased; // what ends the wait comes first
            () = self.no_more_retries.cancelled() => return Err(request.unreachable(ENDED.to_owned())),
            acquired = timeout(self.remaining_time(), self.in_flight.acquire()) => acquired,
        };
        let slot = acquired.map_err(|_| request.unreachable("too many other requests are in flight".to_owned()))?;
        Ok(slot.expect("the semaphore is never closed"))
    }

    /// Returns the response time of the server; `None` if it does not respond. Not retried: the next heartbeat repeats it.
    pub(super) async fn ping(&self) -> Option<Duration> {
        let start = Instant::now();
        let request = ApiRequest::get(Operation::Other("read the version".to_owned()), "/version".to_owned());
        let response = self.send_once(&request, PING_TIMEOUT).await.ok()?;
        response.read::<IgnoredAny>(&request).ok().map(|_| start.elapsed())
    }

    /// Sends a request by the retry policy and returns the JSON of the response.
    pub(super) async fn send(&self, request: &ApiRequest<'_>) -> Result<Value, ClusterError> {
        self.send_for_response(request).await?.read(request)
    }

    /// Sends a request by the retry policy and returns the response with its status and ETag.
    pub(super) async fn send_for_response(&self, request: &ApiRequest<'_>) -> Result<ApiResponse, ClusterError> {
        self.retry(|| self.attempt(request)).await
    }

    /// Waits until a write may be sent, so that what is checked from then on is still so when it is sent.
    pub(super) async fn wait_until_writable(&self, operation: Operation<'_>) -> Result<(), ClusterError> {
        let write = ApiRequest::new(operation, Method::DELETE, String::new(), Bytes::new());
        self.wait_for_write_gate(&write).await?;
        self.check_not_shutting_down(&write)
    }

    /// Sends a write once, if it need not wait longer than until `latest`, and not for the Lease; otherwise returns `None`: what was
    /// checked before it may have changed.
    pub(super) async fn send_until(
        &self,
        request: &ApiRequest<'_>,
        latest: Instant,
    ) -> Result<Option<Value>, ClusterError> {
        let Ok(slot) = timeout_at(latest, self.acquire_slot(request)).await else { return Ok(None) };
        let _slot = slot?;
        self.check_not_shutting_down(request)?;
        if self.gate_of(request).is_some_and(|gate| !gate.is_open()) {
            return Ok(None);
        }
        let response = self.send_once(request, REQUEST_TIMEOUT.min(self.remaining_time())).await?;
        response.read(request).map(Some)
    }

    /// Repeats attempts by the retry policy, until one succeeds or fails for good.
    pub(super) async fn retry<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, ClusterError>
    where
        F: Future<Output = Result<T, ClusterError>>,
    {
        let start = Instant::now();
        let mut failures = 0;
        // Every wait is at least the first one of the policy, so its time limit bounds the number of attempts.
        loop {
            let error = match attempt().await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            failures += 1;
            let retry = error.retry().filter(|_| self.retries_webhooks || !error.is_failed_webhook());
            let Some(retry) = retry else { return Err(error) };
            let wait = self.retry_policy.wait_after(failures, start.elapsed(), retry.after);
            let is_permitted = |wait: &Duration| *wait < self.remaining_time() && !self.no_more_retries.is_cancelled();
            let Some(wait) = wait.filter(is_permitted) else { return Err(error.with_attempts(failures)) };
            tracing::info!("retry in {} s after: {error}", wait.as_secs());
            self.metrics.count_retry();
            tokio::select! {
                biased; // what ends the wait early comes first
                () = self.shutdown.cancelled() => {}
                () = self.no_more_retries.cancelled() => return Err(error.with_attempts(failures)),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Sends a request once, as soon as the write gate and the limit of requests in flight permit it.
    async fn attempt(&self, request: &ApiRequest<'_>) -> Result<ApiResponse, ClusterError> {
        loop {
            self.wait_for_write_gate(request).await?;
            self.check_not_shutting_down(request)?;
            let _slot = self.acquire_slot(request).await?;
            self.check_not_shutting_down(request)?;
            // The Lease may have been lost during the wait for a slot; the wait for the Lease then gives the slot back.
            if self.gate_of(request).is_none_or(WriteGate::is_open) {
                return self.send_once(request, REQUEST_TIMEOUT.min(self.remaining_time())).await;
            }
        }
    }

    async fn send_once(&self, request: &ApiRequest<'_>, limit: Duration) -> Result<ApiResponse, ClusterError> {
        let exchange = timeout(limit, self.exchange(request));
        let response = match self.gate_of(request) {
            None => exchange.await,
            Some(gate) => tokio::select! {
                biased; // a response that has arrived counts
                response = exchange => response,
                // A write that is not connected yet, or not sent completely, must not be once another process may write.
                () = gate.wait_until_closed() => Ok(Err(request.unreachable(LOST_LEASE.to_owned()))),
            },
        };
        let response = response.unwrap_or_else(|_| Err(request.timed_out(limit)));
        self.count(request, response.as_ref().map(|response| response.status));
        response
    }

    /// Sends a request once and returns the body as a stream.
    pub(super) async fn open_stream(&self, request: &ApiRequest<'_>) -> Result<Incoming, ClusterError> {
        let response = timeout(REQUEST_TIMEOUT, self.send_for_head(request)).await;
        let response = response.unwrap_or_else(|_| Err(request.timed_out(REQUEST_TIMEOUT)));
        self.count(request, response.as_ref().map(|(head, _)| head.status));
        response.map(|(_, body)| body)
    }

    fn count(&self, request: &ApiRequest<'_>, status: Result<StatusCode, &ClusterError>) {
        let status = status.map_or_else(ClusterError::status, |status| Some(status.as_u16()));
        self.metrics.count_request(&request.method, status);
    }

    async fn exchange(&self, request: &ApiRequest<'_>) -> Result<ApiResponse, ClusterError> {
        let (head, body) = self.send_for_head(request).await?;
        let etag = head.headers.get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        if head.status == StatusCode::NOT_MODIFIED {
            return Ok(ApiResponse { status: head.status, etag, body: Bytes::new() });
        }
        let body = read_body(request, body).await?;
        Ok(ApiResponse { status: head.status, etag, body })
    }

    /// Returns the head of a response with a status below 400, and its unread body.
    async fn send_for_head(&self, request: &ApiRequest<'_>) -> Result<(Parts, Incoming), ClusterError> {
        let builder = Request::builder()
            .method(request.method.clone())
            .uri(&request.path)
            .header(USER_AGENT, HeaderValue::from_static(USER_AGENT_NAME))
            .header(ACCEPT, HeaderValue::from_static(request.accept))
            .header(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
        let builder = match &request.if_none_match {
            Some(etag) => builder.header(IF_NONE_MATCH, etag),
            None => builder,
        };
        // Reads serve the agent's own decisions, and need its own permissions.
        let builder = match &self.impersonated_user {
            Some(user) if request.method != Method::GET => builder.header(IMPERSONATE_USER, &**user),
            _ => builder,
        };
        let http_request =
            builder.body(Body::from(request.body.clone())).map_err(|error| request.malformed(error.to_string()))?;
        let sent = self.sender.clone().oneshot(http_request).await;
        let response = sent.map_err(|error| request.unreachable(root_cause(&*error)))?;
        let (head, body) = response.into_parts();
        if head.status.as_u16() >= 400 {
            let (after, body) = (retry_after(&head.headers), read_body(request, body).await?);
            let operation = request.operation.to_failed();
            let error = ClusterError::from_response(operation, head.status.as_u16(), after, &body);
            return Err(if request.operation.is_confidential() { error.without_content() } else { error });
        }
        Ok((head, body))
    }
}

async fn read_body(request: &ApiRequest<'_>, body: Incoming) -> Result<Bytes, ClusterError> {
    let collected = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
    Ok(collected.map_err(|error| request.unreachable(root_cause(&*error)))?.to_bytes())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use http::Response;
    use tower::{BoxError, service_fn};

    use super::*;

    const IN_FLIGHT_MAX: usize = 3;

    /// Client of a cluster that never responds, and the number of requests that it received.
    fn silent_client() -> (ApiClient, Arc<AtomicUsize>) {
        let received = Arc::new(AtomicUsize::new(0));
        let counter = received.clone();
        let service = service_fn(move |_: Request<Body>| {
            counter.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<Response<Incoming>, BoxError>>()
        });
        let limits = Limits { requests_in_flight: IN_FLIGHT_MAX, ..Limits::default() };
        (ApiClient::new(Sender::new(service), RetryPolicy::default(), Arc::default(), limits), received)
    }

    fn read_version() -> ApiRequest<'static> {
        ApiRequest::get(Operation::Other("read".to_owned()), "/version".to_owned())
    }

    #[tokio::test]
    async fn requests_in_flight_are_limited_and_a_deadline_also_ends_the_wait_for_a_slot() {
        let ((client, received), request) = (silent_client(), read_version());
        let mut requests: Vec<_> = (0..IN_FLIGHT_MAX + 2).map(|_| Box::pin(client.send(&request))).collect();
        assert!(requests.iter_mut().all(|request| request.now_or_never().is_none()));
        assert_eq!(received.load(Ordering::Relaxed), IN_FLIGHT_MAX);
        let hasty = ApiClient { deadline: Some(Instant::now() + Duration::from_millis(20)), ..client.clone() };
        let error = hasty.send(&request).await.unwrap_err();
        assert!(error.to_string().contains("too many other requests"), "{error}");
        drop(requests.remove(0));
        assert!(requests.iter_mut().all(|request| request.now_or_never().is_none()));
        assert_eq!(received.load(Ordering::Relaxed), IN_FLIGHT_MAX + 1, "a request that ends frees one slot");
    }

    #[tokio::test]
    async fn writes_name_the_impersonated_user_and_reads_do_not() {
        let users: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let seen = users.clone();
        let service = service_fn(move |request: Request<Body>| {
            let user = request.headers().get(IMPERSONATE_USER).map(|user| user.to_str().unwrap_or_default().to_owned());
            seen.lock().unwrap().push(user);
            std::future::pending::<Result<Response<Incoming>, BoxError>>()
        });
        let mut client =
            ApiClient::new(Sender::new(service), RetryPolicy::default(), Arc::default(), Limits::default());
        client.impersonated_user = Some("system:serviceaccount:shop:deployer".into());
        let (read, mut write) = (read_version(), read_version());
        write.method = Method::PATCH;
        assert!(client.send(&read).now_or_never().is_none() && client.send(&write).now_or_never().is_none());
        assert_eq!(*users.lock().unwrap(), [None, client.impersonated_user.as_deref().map(str::to_owned)]);
    }

    #[tokio::test]
    async fn shutdown_cancels_a_write_that_waits_for_the_lease() {
        let ((client, received), mut request) = (silent_client(), read_version());
        request.method = Method::PATCH;
        client.write_gate();
        let mut write = Box::pin(client.send(&request));
        assert!((&mut write).now_or_never().is_none());
        client.shutdown.cancel();
        assert!(matches!(write.now_or_never(), Some(Err(ClusterError::ShuttingDown { .. }))));
        assert_eq!(received.load(Ordering::Relaxed), 0);
    }
}
