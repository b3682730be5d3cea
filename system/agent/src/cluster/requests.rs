//! One request to the API server and its answer, with a deadline, a size limit and the retry policy.

use std::fmt;
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
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tower::ServiceExt;

use super::connect::Sender;
use super::discovery::Discovery;
use super::error::ClusterError;
use crate::cluster::retry::RetryPolicy;
use crate::cluster::shutdown::Stop;
use crate::cluster::write_gate::Holding;
use crate::pass::inventory::INVENTORY_NAMESPACE;
use crate::telemetry::metrics::Metrics;

const AGENT: &str = concat!("sindri-agent/", env!("CARGO_PKG_VERSION"));
/// From the first byte sent to the last byte received.
const DEADLINE: Duration = Duration::from_secs(60);
/// The same for a ping: a cluster that hangs does not hold up a heartbeat for longer.
const PING_DEADLINE: Duration = Duration::from_secs(5);
/// So many calls are under way at once, whoever makes them; watches and pings aside.
const CALLS_MAX: usize = 128;
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A client of one cluster.
pub struct Cluster {
    sender: Sender,
    policy: RetryPolicy,
    metrics: Arc<Metrics>,
    calls: Semaphore,
    pub(super) discovery: Mutex<Discovery>,
    /// The one namespace that may be touched; without it, all of them.
    scope: Option<String>,
    /// Without a Lease, everybody may write.
    holding: OnceLock<Holding>,
    /// Asked for when the agent ends: no call is begun after that.
    pub(crate) stop: Stop,
}

/// What a call is about, as it reads in an error: `apply ConfigMap shop/a`. Put into words only then.
pub(super) enum Operation<'a> {
    Of(&'static str, &'a ObjectKey),
    Said(String),
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(verb, key) => write!(f, "{verb} {key}"),
            Self::Said(words) => f.write_str(words),
        }
    }
}

/// What one call sends.
pub(super) struct Call<'a> {
    pub operation: Operation<'a>,
    pub method: Method,
    pub path: String,
    pub accept: &'static str,
    pub content_type: &'static str,
    pub if_none_match: Option<String>,
    pub body: Bytes,
    /// From then on nobody waits for it: neither for an answer nor to try again.
    pub until: Option<Instant>,
}

/// What came back.
pub(super) struct Answer {
    pub status: StatusCode,
    pub etag: Option<String>,
    /// JSON, unless it is as it was: then there is nothing.
    body: Bytes,
}

pub(super) const JSON: &str = "application/json";

impl<'a> Call<'a> {
    pub(super) fn get(operation: Operation<'a>, path: String) -> Self {
        let (method, body) = (Method::GET, Bytes::new());
        Self { operation, method, path, accept: JSON, content_type: JSON, if_none_match: None, body, until: None }
    }

    pub(super) fn until(mut self, until: Instant) -> Self {
        self.until = Some(until);
        self
    }

    pub(super) fn accepting(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// How long somebody still waits for it.
    fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    pub(super) fn malformed(&self, cause: impl Into<String>) -> ClusterError {
        ClusterError::Malformed { operation: self.operation.to_string(), cause: cause.into() }
    }

    pub(super) fn unreachable(&self, cause: String) -> ClusterError {
        ClusterError::Unreachable { operation: self.operation.to_string(), cause, attempts: 0 }
    }
}

impl Answer {
    /// What the server says.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self, call: &Call<'_>) -> Result<T, ClusterError> {
        serde_json::from_slice(&self.body).map_err(|error| call.malformed(error.to_string()))
    }
}

impl Cluster {
    /// A cluster, to which requests get by `sender`; see [`super::sender()`].
    pub fn new(sender: Sender, policy: RetryPolicy) -> Self {
        Self {
            sender,
            policy,
            metrics: Arc::default(),
            calls: Semaphore::new(CALLS_MAX),
            discovery: Mutex::new(Discovery::default()),
            scope: None,
            holding: OnceLock::new(),
            stop: Stop::default(),
        }
    }

    /// The same cluster, for what has to be said when everything else has ended.
    pub fn apart(&self) -> Self {
        Self::new(self.sender.clone(), self.policy).counted(self.metrics.clone()).within(self.scope.clone())
    }

    /// From now on nothing is written unless the Lease is held.
    pub fn guarded(&self) -> Holding {
        self.holding.get_or_init(Holding::default).clone()
    }

    /// Waits until this process may make a call, or is to end.
    async fn may_send(&self, call: &Call<'_>) -> Result<(), ClusterError> {
        let Some(holding) = self.guard(call) else { return Ok(()) };
        tokio::select! {
            biased; // whoever stops does not wait
            () = self.stop.asked() => Ok(()),
            held = tokio::time::timeout(DEADLINE, holding.held()) => held
                .map_err(|_| call.unreachable("the Lease could not be renewed, and nothing may be written".to_owned())),
        }
    }

    /// Nothing is begun by a process that is to end.
    fn go_on(&self, call: &Call<'_>) -> Result<(), ClusterError> {
        if self.stop.is_asked() {
            return Err(ClusterError::Stopped { operation: call.operation.to_string() });
        }
        Ok(())
    }

    /// What a call needs to be allowed.
    fn guard(&self, call: &Call<'_>) -> Option<&Holding> {
        self.holding.get().filter(|_| call.method != Method::GET)
    }

    /// Waits until fewer others are under way.
    async fn place(&self, call: &Call<'_>) -> Result<SemaphorePermit<'_>, ClusterError> {
        if let Ok(place) = self.calls.try_acquire() {
            return Ok(place);
        }
        let waited = tokio::time::timeout(call.left(), self.calls.acquire()).await;
        let place = waited.map_err(|_| call.unreachable("too many other calls are under way".to_owned()))?;
        Ok(place.expect("nobody closes it"))
    }

    /// The same cluster, but of it only one namespace if one is given.
    #[must_use]
    pub fn within(mut self, scope: Option<String>) -> Self {
        self.scope = scope;
        self
    }

    /// The one namespace that may be touched, if there is one.
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// The namespace of the agent's own objects.
    pub fn home(&self) -> &str {
        self.scope().unwrap_or(INVENTORY_NAMESPACE)
    }

    /// The same cluster, with its calls counted there.
    pub fn counted(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Whether the server answers now, and how fast. Not retried: it is asked again with the next heartbeat.
    pub async fn ping(&self) -> Option<Duration> {
        let start = Instant::now();
        let call = Call::get(Operation::Said("ask for the version".to_owned()), "/version".to_owned());
        let answer = self.once(&call, PING_DEADLINE).await.ok()?;
        answer.read::<IgnoredAny>(&call).ok().map(|_| start.elapsed())
    }

    /// Sends a call by the retry policy; `Ok` is a JSON answer with a status below 400.
    pub(super) async fn send(&self, call: &Call<'_>) -> Result<Value, ClusterError> {
        self.send_for_answer(call).await?.read(call)
    }

    /// The same, with the status and the ETag, and not read yet.
    pub(super) async fn send_for_answer(&self, call: &Call<'_>) -> Result<Answer, ClusterError> {
        let start = Instant::now();
        let mut failures = 0;
        // Every wait is at least the first one of the policy, so its time limit bounds the number of attempts.
        loop {
            let error = match self.in_turn(call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let Some(retry) = error.retry() else { return Err(error) };
            let wait = self.policy.wait(failures, start.elapsed(), retry.after);
            let Some(wait) = wait.filter(|wait| *wait < call.left()) else {
                return Err(error.given_up(failures));
            };
            tracing::info!("retry in {} s after: {error}", wait.as_secs());
            self.metrics.retried();
            tokio::select! {
                biased; // whoever stops does not wait
                () = self.stop.asked() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Sends a call once, when it may be sent.
    async fn in_turn(&self, call: &Call<'_>) -> Result<Answer, ClusterError> {
        loop {
            self.may_send(call).await?;
            self.go_on(call)?;
            let _place = self.place(call).await?;
            self.go_on(call)?;
            // The Lease may have been lost while there was no place; whoever waits for it needs none.
            if self.guard(call).is_none_or(Holding::is_held) {
                return self.once(call, DEADLINE.min(call.left())).await;
            }
        }
    }

    async fn once(&self, call: &Call<'_>, deadline: Duration) -> Result<Answer, ClusterError> {
        let answered = tokio::time::timeout(deadline, self.exchange(call)).await;
        let answered =
            answered.unwrap_or_else(|_| Err(call.unreachable(format!("no answer within {} s", deadline.as_secs()))));
        self.count(call, answered.as_ref().map(|answer| answer.status));
        answered
    }

    /// Sends a call once and returns a body that is read as it comes.
    pub(super) async fn open(&self, call: &Call<'_>) -> Result<Incoming, ClusterError> {
        let answered = tokio::time::timeout(DEADLINE, self.answer(call)).await;
        let answered =
            answered.unwrap_or_else(|_| Err(call.unreachable(format!("no answer within {} s", DEADLINE.as_secs()))));
        self.count(call, answered.as_ref().map(|(head, _)| head.status));
        answered.map(|(_, body)| body)
    }

    fn count(&self, call: &Call<'_>, status: Result<StatusCode, &ClusterError>) {
        let status = status.map_or_else(ClusterError::status, |status| Some(status.as_u16()));
        self.metrics.called(&call.method, status);
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Answer, ClusterError> {
        let (head, body) = self.answer(call).await?;
        let etag = head.headers.get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        if head.status == StatusCode::NOT_MODIFIED {
            return Ok(Answer { status: head.status, etag, body: Bytes::new() });
        }
        let body = whole(call, body).await?;
        Ok(Answer { status: head.status, etag, body })
    }

    /// An answer with a status below 400, and its body.
    async fn answer(&self, call: &Call<'_>) -> Result<(Parts, Incoming), ClusterError> {
        let request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(USER_AGENT, HeaderValue::from_static(AGENT))
            .header(ACCEPT, HeaderValue::from_static(call.accept))
            .header(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        let request = match &call.if_none_match {
            Some(etag) => request.header(IF_NONE_MATCH, etag),
            None => request,
        };
        let request = request.body(Body::from(call.body.clone())).map_err(|error| call.malformed(error.to_string()))?;
        let sent = self.sender.clone().oneshot(request).await;
        let response = sent.map_err(|error| call.unreachable(root_cause(&*error)))?;
        let (head, body) = response.into_parts();
        if head.status.as_u16() >= 400 {
            let (after, body) = (retry_after(&head.headers), whole(call, body).await?);
            return Err(ClusterError::refused(&call.operation.to_string(), head.status.as_u16(), after, &body));
        }
        Ok((head, body))
    }
}

async fn whole(call: &Call<'_>, body: Incoming) -> Result<Bytes, ClusterError> {
    let collected = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    Ok(collected.map_err(|error| call.unreachable(root_cause(&*error)))?.to_bytes())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use http::Response;
    use tower::{BoxError, service_fn};

    use super::*;

    /// A cluster that never answers, and how many calls it got.
    fn silent() -> (Cluster, Arc<AtomicUsize>) {
        let got = Arc::new(AtomicUsize::new(0));
        let counted = got.clone();
        let service = service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<Response<Incoming>, BoxError>>()
        });
        (Cluster::new(Sender::new(service), RetryPolicy::default()), got)
    }

    fn look() -> Call<'static> {
        Call::get(Operation::Said("look".to_owned()), "/version".to_owned())
    }

    #[tokio::test]
    async fn so_many_calls_are_under_way_and_a_place_is_not_waited_for_any_longer_than_an_answer() {
        let ((cluster, got), call) = (silent(), look());
        let mut calls: Vec<_> = (0..CALLS_MAX + 2).map(|_| Box::pin(cluster.send(&call))).collect();
        assert!(calls.iter_mut().all(|call| call.now_or_never().is_none()));
        assert_eq!(got.load(Ordering::Relaxed), CALLS_MAX);
        let hasty = look().until(Instant::now() + Duration::from_millis(20));
        let error = cluster.send(&hasty).await.unwrap_err();
        assert!(error.to_string().contains("too many other calls"), "{error}");
        drop(calls.remove(0));
        assert!(calls.iter_mut().all(|call| call.now_or_never().is_none()));
        assert_eq!(got.load(Ordering::Relaxed), CALLS_MAX + 1, "whoever ends makes room for one");
    }

    #[tokio::test]
    async fn whoever_waits_for_the_lease_hears_that_the_agent_ends() {
        let ((cluster, got), mut call) = (silent(), look());
        call.method = Method::PATCH;
        cluster.guarded();
        let mut write = Box::pin(cluster.send(&call));
        assert!((&mut write).now_or_never().is_none());
        cluster.stop.ask();
        assert!(matches!(write.now_or_never(), Some(Err(ClusterError::Stopped { .. }))));
        assert_eq!(got.load(Ordering::Relaxed), 0);
    }
}
