//! Polls that are answered from memory, before any routing: the same answers that the router would give, at a
//! fraction of its cost. A fleet does little else than poll, and most of the time it waits.
//!
//! Whatever is not plainly such a poll goes to the router: another key, another query, an answer that is not
//! remembered.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request};
use sindri_model::wire::{AGENT_STATUS_HEADER, AgentStatus};
use sindri_model::{AgentId, Pak};
use tokio::time::{Instant, timeout_at};

use super::http::authentication::{ActorLabel, parse_key};
use super::http::request_log;
use super::resources::target_state::{cached_response, not_modified, reported_status};
use crate::broker::Broker;
use crate::memory::matches_if_none_match;
use crate::metrics::Metrics;
use crate::request_id::REQUEST_ID;
use crate::store::KeyHolder;

const BEFORE_ID: &str = "/api/v1/agents/";
const AFTER_ID: &str = "/target-state";
const ROUTE: &str = "/api/v1/agents/{id}/target-state";
const WAIT: &str = "wait=";

/// What is known about a poll without asking anybody.
pub(crate) enum Remembered {
    /// Its answer.
    Answer(Response),
    /// That it waits.
    Waits(WaitingPoll),
    /// Nothing.
    Nothing,
}

/// An agent's own poll.
struct Poll {
    agent: AgentId,
    pak: Pak,
    /// What the agent has.
    known: Option<HeaderValue>,
    /// The status that it believes to have, or had when it began to wait.
    status: Option<AgentStatus>,
    /// How it can be sent.
    encoding: Option<HeaderValue>,
    id: HeaderValue,
    began: Instant,
}

/// A poll that waits for a change.
pub(crate) struct WaitingPoll {
    broker: Broker,
    poll: Poll,
    until: Instant,
}

/// Looks whether a request is a poll that memory can answer.
pub(crate) fn from_memory(broker: &Broker, head: &Parts) -> Remembered {
    let Some(poll) = poll(broker, head) else { return Remembered::Nothing };
    match head.uri.query() {
        None => poll.answer(broker).map_or(Remembered::Nothing, Remembered::Answer),
        Some(query) => match query.strip_prefix(WAIT).and_then(|seconds| seconds.parse().ok()) {
            Some(seconds) => {
                let until = poll.began + Duration::from_secs(seconds).min(broker.bounds.wait_max);
                Remembered::Waits(WaitingPoll { broker: broker.clone(), poll: poll.detached(), until })
            }
            None => Remembered::Nothing,
        },
    }
}

fn poll(broker: &Broker, head: &Parts) -> Option<Poll> {
    let began = Instant::now();
    if head.method != Method::GET {
        return None;
    }
    let agent = head.uri.path().strip_prefix(BEFORE_ID)?.strip_suffix(AFTER_ID)?.parse().ok()?;
    let pak = parse_key(head.headers.get(AUTHORIZATION)?)?;
    if broker.memory.keys.holder(&pak)? != KeyHolder::Agent(agent) {
        return None;
    }
    let known = head.headers.get(IF_NONE_MATCH).cloned();
    let encoding = head.headers.get(ACCEPT_ENCODING).cloned();
    let status = reported_status(&head.headers);
    Some(Poll { agent, pak, known, status, encoding, id: broker.request_ids.get_or_mint(&head.headers), began })
}

impl Poll {
    fn known(&self) -> &[u8] {
        self.known.as_ref().map(HeaderValue::as_bytes).unwrap_or_default()
    }

    /// With copies of its headers: a header holds on to the whole buffer that it came in.
    fn detached(self) -> Self {
        let copy = |value: &HeaderValue| HeaderValue::from_bytes(value.as_bytes()).ok();
        Self {
            known: self.known.as_ref().and_then(copy),
            encoding: self.encoding.as_ref().and_then(copy),
            id: copy(&self.id).unwrap_or(HeaderValue::from_static("-")),
            ..self
        }
    }

    /// The poll again, for the router.
    fn request(self, until: Instant) -> Request<Body> {
        let seconds = until.saturating_duration_since(Instant::now()).as_secs();
        let mut request = Request::new(Body::empty());
        let target = format!("{BEFORE_ID}{}{AFTER_ID}?{WAIT}{seconds}", self.agent);
        *request.uri_mut() = target.parse().expect("an id and a number are fit for a path");
        let headers = request.headers_mut();
        let key = HeaderValue::from_str(&self.pak.reveal()).ok();
        let status = self.status.map(|status| HeaderValue::from_static(status.as_str()));
        let values = [
            (AUTHORIZATION, key),
            (IF_NONE_MATCH, self.known),
            (ACCEPT_ENCODING, self.encoding),
            (HeaderName::from_static(AGENT_STATUS_HEADER), status),
        ];
        headers.extend(values.into_iter().filter_map(|(name, value)| Some((name, value?))));
        headers.insert(REQUEST_ID, self.id);
        request
    }

    fn answer(self, broker: &Broker) -> Option<Response> {
        // What memory holds is not compressed.
        if self.encoding.as_ref().is_some_and(|encoding| encoding.as_bytes() != b"identity") {
            let answer = broker.memory.target_states.get(self.agent)?;
            let response = matches_if_none_match(&answer.etag, self.known()).then(|| not_modified(&answer))?;
            return Some(self.told(broker, response));
        }
        let response = cached_response(&broker.memory.target_states.get(self.agent)?, self.known())?;
        Some(self.told(broker, response))
    }

    /// What stands around every answer.
    fn told(self, broker: &Broker, mut response: Response) -> Response {
        response.headers_mut().insert(REQUEST_ID, self.id);
        response.extensions_mut().insert(ActorLabel(self.pak.short().to_owned()));
        broker.metrics.record_request(&Method::GET, Some(ROUTE), response.status(), self.began.elapsed());
        request_log::write_line(&Method::GET, ROUTE, &response);
        response
    }
}

impl WaitingPoll {
    /// That nothing changed in time; or the poll again, if something did or if memory has no answer: the router knows.
    pub(crate) async fn wait(self) -> Result<Response, Request<Body>> {
        let Self { broker, mut poll, until } = self;
        match still_unchanged(&broker, &mut poll, until).await {
            Some(response) => Ok(poll.told(&broker, response)),
            None => Err(poll.request(until)),
        }
    }
}

async fn still_unchanged(broker: &Broker, poll: &mut Poll, until: Instant) -> Option<Response> {
    let change = broker.memory.target_states.change_notification(poll.agent)?;
    // Before the answer is looked at: a change after that is heard.
    let mut changed = Box::pin(change.notified());
    changed.as_mut().enable();
    let answer = broker.memory.target_states.get(poll.agent)?;
    if !matches_if_none_match(&answer.etag, poll.known()) {
        return None;
    }
    if *poll.status.get_or_insert(answer.status) != answer.status {
        return Some(not_modified(&answer));
    }
    let _waits = Waits::new(&broker.metrics);
    timeout_at(until, changed).await.err()?;
    Some(not_modified(&answer))
}

/// Counted among the polls that wait.
struct Waits<'a>(&'a Metrics);

impl<'a> Waits<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.poll_wait_started();
        Self(metrics)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.poll_wait_ended();
    }
}
