//! The simulated server in this process, on a virtual clock, as the server of an exchange.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::{SignedDuration, Timestamp};
use sindri_apiserver::{
    ApiServer, Handled, Headers, Request, Response, WatchId, WebhookAnswer, WebhookAnswers, WebhookCall, WebhookReply,
};
use sindri_cluster::webhook_server::{WebhookAddress, WebhookServerError};
use sindri_record::connection::ConnectionError;
use sindri_record::response::FullResponse;
use sindri_record::server::{Opened, Server};
use sindri_record::webhook::Webhooks;

/// Administrator's token.
pub const TOKEN: &str = "administrator";
/// Address of the server in requests.
pub const AUTHORITY: &str = "127.0.0.1:6443";
/// Start time of every run.
const START_SECOND: i64 = 1_767_225_600;
/// Virtual duration of a request.
const REQUEST_TAKES: Duration = Duration::from_millis(2);
/// Timeout of the next event of a stream, as for a real server.
const EVENT_MAX: Duration = Duration::from_secs(20);
/// Address of webhooks.
const WEBHOOKS: &str = "127.0.0.1:9443";
/// Largest number of times that a request waits for webhooks.
const WEBHOOK_ROUNDS_MAX: usize = 100;

/// The server and its virtual time.
#[derive(Clone)]
pub struct SimulatedServer {
    server: ApiServer,
    now: Timestamp,
    webhooks: Webhooks,
}

/// An open watch.
pub struct OpenWatch {
    id: WatchId,
    lines: VecDeque<Bytes>,
}

impl SimulatedServer {
    /// Creates a server, with or without the controllers of a complete control plane.
    #[must_use]
    pub fn new(controllers: bool) -> Self {
        let now = Timestamp::from_second(START_SECOND).expect("a timestamp of this century");
        let server = ApiServer::new(0, now).without_journal().with_administrator(TOKEN);
        let server = if controllers { server.with_workloads() } else { server.without_controllers() };
        Self { server, now, webhooks: Webhooks::default() }
    }

    fn handle(&mut self, request: &http::Request<Bytes>) -> Result<Response, ConnectionError> {
        self.advance_by(REQUEST_TAKES);
        let broken = |error: String| ConnectionError::Body(error);
        let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let mut converted =
            Request::new(request.method().clone(), target).map_err(|error| broken(error.to_string()))?;
        converted.headers = Headers::read(request.headers());
        converted.body = request.body().clone();
        let mut answers = WebhookAnswers::default();
        for _ in 0..WEBHOOK_ROUNDS_MAX {
            match self.server.try_handle(self.now, &converted, None, &mut answers) {
                Handled::Response(response) => return Ok(response),
                Handled::Calls(calls) => {
                    for call in &calls {
                        let answer = self.call_webhook(call);
                        answers.add(call, answer);
                    }
                }
            }
        }
        Err(broken("the request waits for webhooks too often".to_owned()))
    }

    /// Answers a call as the webhooks of the script do, and lets their delay pass.
    fn call_webhook(&mut self, call: &WebhookCall) -> WebhookAnswer {
        let address = format!("{}:{}", call.host, call.port);
        if address != WEBHOOKS {
            return Err(format!("dial tcp {address}: connect: connection refused"));
        }
        let path = call.url.splitn(4, '/').nth(3).unwrap_or_default().split('?').next().unwrap_or_default();
        let reply = self.webhooks.reply(&format!("/{path}"), &call.body);
        self.advance_by(reply.delay.min(call.timeout));
        if reply.delay >= call.timeout {
            return Err("context deadline exceeded".to_owned());
        }
        let content_type = reply.content_type.to_owned();
        Ok(WebhookReply { status: reply.status, content_type, body: reply.body.into() })
    }

    fn advance_by(&mut self, time: Duration) {
        let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        let end = self.now.checked_add(time).unwrap_or(Timestamp::MAX);
        while let Some(next) = self.server.next_tick().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.server.tick(self.now);
        }
        self.now = end;
        self.server.tick(end);
    }

    /// Advances the time to the next possible event of a watch, at most to `until`.
    fn advance_for_watch(&mut self, id: WatchId, until: Timestamp) {
        let next = [self.server.next_tick(), self.server.watch_wakes_at(id)].into_iter().flatten().min();
        self.now = next.map_or(until, |next| next.clamp(self.now, until));
        self.server.tick(self.now);
    }
}

impl Server for SimulatedServer {
    type Stream = OpenWatch;

    async fn send(&mut self, request: http::Request<Bytes>) -> Result<FullResponse, ConnectionError> {
        let response = self.handle(&request)?;
        match response {
            Response::Full { status, headers, body } => full_response(status, &headers, body),
            Response::Watch(id) => {
                // A watch that is read as a response is read to its end.
                let headers = self.server.watch_headers(id);
                let mut watching = OpenWatch { id, lines: VecDeque::new() };
                let mut body = Vec::new();
                while let Some(line) = self.next(&mut watching).await? {
                    body.extend_from_slice(&line);
                }
                full_response(StatusCode::OK.as_u16(), &headers, body.into())
            }
            Response::Upgrade(_) => full_response(StatusCode::SWITCHING_PROTOCOLS.as_u16(), &[], Bytes::new()),
            Response::Cut => Err(ConnectionError::Cut),
        }
    }

    async fn open(&mut self, request: http::Request<Bytes>) -> Result<Opened<OpenWatch>, ConnectionError> {
        Ok(match self.handle(&request)? {
            Response::Watch(id) => Opened::Stream {
                status: StatusCode::OK,
                headers: header_map(&self.server.watch_headers(id))?,
                stream: OpenWatch { id, lines: VecDeque::new() },
            },
            Response::Full { status, headers, body } => Opened::Rejected(full_response(status, &headers, body)?),
            Response::Upgrade(_) => {
                Opened::Rejected(full_response(StatusCode::SWITCHING_PROTOCOLS.as_u16(), &[], Bytes::new())?)
            }
            Response::Cut => return Err(ConnectionError::Cut),
        })
    }

    async fn next(&mut self, stream: &mut OpenWatch) -> Result<Option<Bytes>, ConnectionError> {
        let wait = SignedDuration::try_from(EVENT_MAX).unwrap_or(SignedDuration::MAX);
        let until = self.now.checked_add(wait).unwrap_or(Timestamp::MAX);
        loop {
            stream.lines.extend(self.server.watch_events(stream.id, self.now));
            if let Some(line) = stream.lines.pop_front() {
                return Ok(Some(line));
            }
            if self.server.watch_is_closed(stream.id) {
                return Ok(None);
            }
            if self.now >= until {
                return Err(ConnectionError::TimedOut { what: "event", max: EVENT_MAX });
            }
            self.advance_for_watch(stream.id, until);
        }
    }

    async fn advance(&mut self, time: Duration) {
        self.advance_by(time);
    }

    async fn serve_webhooks(&mut self, webhooks: Webhooks) -> Result<WebhookAddress, WebhookServerError> {
        self.webhooks = webhooks;
        Ok(WebhookAddress { authority: WEBHOOKS.to_owned(), certificate: "authority".to_owned() })
    }
}

fn full_response(
    status: u16,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> Result<FullResponse, ConnectionError> {
    let status = StatusCode::from_u16(status).map_err(|error| ConnectionError::Body(error.to_string()))?;
    Ok(FullResponse { status, headers: header_map(headers)?, body })
}

fn header_map(headers: &[(&'static str, String)]) -> Result<HeaderMap, ConnectionError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::try_from(value).map_err(|error| ConnectionError::Body(error.to_string()))?;
        map.append(HeaderName::from_static(name), value);
    }
    Ok(map)
}
