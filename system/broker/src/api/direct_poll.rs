//! Polls of agents whose keys are cached, answered without the router: by the same functions in the same order, but without a
//! copied service and a boxed future for each layer. A fleet does little else than poll, and most polls wait.
//!
//! Any other request, and any poll with other parameters, goes to the router.

use std::net::IpAddr;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::Method;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sindri_model::AgentId;
use sindri_traces::{REQUEST_ID, RequestContext, scope};
use tokio::time::Instant;

use super::http::authentication::{ActorLabel, Credentials};
use super::http::compression::{accepts_gzip, compress_response};
use super::http::request_limits::count_request;
use super::http::request_log::record_response;
use super::resources::poll::{Poll, respond_to_poll};
use super::resources::target_state::AgentHeaders;
use crate::broker::Broker;
use crate::store::{KeyAccess, KeyHolder};

const BEFORE_ID: &str = "/api/v1/agents/";
const AFTER_ID: &str = "/target-state";
const ROUTE: &str = "/api/v1/agents/{id}/target-state";

/// A poll of an agent for its own target state.
pub(crate) struct DirectPoll<'a> {
    broker: &'a Broker,
    poll: Poll,
    accepts_gzip: bool,
    request: RequestContext,
    actor: ActorLabel,
    client: Option<IpAddr>,
    started: Instant,
}

impl<'a> DirectPoll<'a> {
    /// Returns the poll that a request without a body is; `None` for every other request.
    pub(crate) fn from_request(broker: &'a Broker, peer: Option<IpAddr>, head: &Parts) -> Option<Self> {
        if head.method != Method::GET {
            return None;
        }
        let agent: AgentId = head.uri.path().strip_prefix(BEFORE_ID)?.strip_suffix(AFTER_ID)?.parse().ok()?;
        let wait = match head.uri.query() {
            None => Duration::ZERO,
            Some(query) => Duration::from_secs(query.strip_prefix("wait=")?.parse().ok()?),
        };
        let client = peer.map(|peer| broker.trusted_proxies.client_address(peer, &head.headers));
        let credentials = Credentials::parse(head.headers.get(AUTHORIZATION)?, client)?;
        let key = credentials.find_cached(broker)?;
        let is_allowed = key.holder == KeyHolder::Agent(agent) && key.access == KeyAccess::Full;
        if !is_allowed || count_request(broker, key.holder).is_err() {
            return None;
        }
        Some(Self {
            poll: AgentHeaders::read(&head.headers, client).into_poll(agent, wait.min(broker.bounds.wait_max)),
            accepts_gzip: accepts_gzip(&head.headers),
            request: broker.request_ids.read_context(&head.headers),
            actor: credentials.label(),
            client,
            started: Instant::now(),
            broker,
        })
    }

    /// Responds to the poll, at once or after its wait.
    pub(crate) fn respond(self) -> impl Future<Output = Response> {
        let Self { broker, poll, accepts_gzip, request, actor, client, started } = self;
        let id = request.id.clone();
        let respond = async move {
            let response = respond_to_poll(broker, poll).await.unwrap_or_else(IntoResponse::into_response);
            let mut response = compress_response(response, accepts_gzip);
            response.extensions_mut().insert(actor);
            record_response(&broker.metrics, (&Method::GET, Some(ROUTE), client), started, &response);
            response.headers_mut().insert(REQUEST_ID, id);
            response
        };
        scope(request, respond)
    }
}
