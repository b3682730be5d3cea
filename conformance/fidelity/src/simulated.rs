//! The simulated server as an exchange sees it: asked in this process, on a clock that moves when it is told to.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::{SignedDuration, Timestamp};
use sindri_apiserver::{ApiServer, Headers, Request, Response, WatchId};
use sindri_record::answer::Answer;
use sindri_record::connection::ConnectionError;
use sindri_record::server::{Opened, Server};

/// The token of the administrator.
pub const TOKEN: &str = "administrator";
/// What the server takes for its own address.
pub const AUTHORITY: &str = "127.0.0.1:6443";
/// Every run begins at this moment.
const BEGIN: i64 = 1_767_225_600;
/// How long a request takes.
const REQUEST_TAKES: Duration = Duration::from_millis(2);
/// How long the next line of a stream may take, as for a real server.
const LINE_MAX: Duration = Duration::from_secs(20);

/// The machine, and what time it is there.
#[derive(Clone)]
pub struct Simulated {
    machine: ApiServer,
    now: Timestamp,
}

/// An open watch.
pub struct Watching {
    id: WatchId,
    lines: VecDeque<Bytes>,
}

impl Simulated {
    /// A fresh server, with or without the controllers of a whole control plane.
    #[must_use]
    pub fn new(controllers: bool) -> Self {
        let now = Timestamp::from_second(BEGIN).expect("a moment of this century");
        let machine = ApiServer::new(0, now).without_journal().with_administrator(TOKEN);
        let machine = if controllers { machine.with_workloads() } else { machine.without_controllers() };
        Self { machine, now }
    }

    fn ask(&mut self, request: &http::Request<Bytes>) -> Result<Response, ConnectionError> {
        self.let_pass(REQUEST_TAKES);
        let broken = |error: String| ConnectionError::Body(error);
        let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let mut asked = Request::new(request.method().clone(), target).map_err(|error| broken(error.to_string()))?;
        asked.headers = Headers::read(request.headers());
        asked.body = request.body().clone();
        Ok(self.machine.handle(self.now, &asked, None))
    }

    fn let_pass(&mut self, time: Duration) {
        let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        let end = self.now.checked_add(time).unwrap_or(Timestamp::MAX);
        while let Some(next) = self.machine.next_tick().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.machine.tick(self.now);
        }
        self.now = end;
        self.machine.tick(end);
    }

    /// Lets time pass until something may happen to a watch, at most until a moment.
    fn wait_for(&mut self, id: WatchId, until: Timestamp) {
        let next = [self.machine.next_tick(), self.machine.watch_wakes_at(id)].into_iter().flatten().min();
        self.now = next.map_or(until, |next| next.clamp(self.now, until));
        self.machine.tick(self.now);
    }
}

impl Server for Simulated {
    type Stream = Watching;

    async fn send(&mut self, request: http::Request<Bytes>) -> Result<Answer, ConnectionError> {
        let response = self.ask(&request)?;
        match response {
            Response::Full { status, headers, body } => answer(status, &headers, body),
            Response::Watch(id) => {
                // Whoever reads a stream to its end gets every line of it.
                let headers = self.machine.watch_headers(id);
                let mut watching = Watching { id, lines: VecDeque::new() };
                let mut body = Vec::new();
                while let Some(line) = self.next(&mut watching).await? {
                    body.extend_from_slice(&line);
                }
                answer(StatusCode::OK.as_u16(), &headers, body.into())
            }
            Response::Cut => Err(ConnectionError::Cut),
        }
    }

    async fn open(&mut self, request: http::Request<Bytes>) -> Result<Opened<Watching>, ConnectionError> {
        Ok(match self.ask(&request)? {
            Response::Watch(id) => Opened::Stream {
                status: StatusCode::OK,
                headers: header_map(&self.machine.watch_headers(id))?,
                stream: Watching { id, lines: VecDeque::new() },
            },
            Response::Full { status, headers, body } => Opened::Refused(answer(status, &headers, body)?),
            Response::Cut => return Err(ConnectionError::Cut),
        })
    }

    async fn next(&mut self, stream: &mut Watching) -> Result<Option<Bytes>, ConnectionError> {
        let wait = SignedDuration::try_from(LINE_MAX).unwrap_or(SignedDuration::MAX);
        let until = self.now.checked_add(wait).unwrap_or(Timestamp::MAX);
        loop {
            stream.lines.extend(self.machine.watch_events(stream.id, self.now));
            if let Some(line) = stream.lines.pop_front() {
                return Ok(Some(line));
            }
            if self.machine.watch_is_closed(stream.id) {
                return Ok(None);
            }
            if self.now >= until {
                return Err(ConnectionError::TooLong { what: "event", max: LINE_MAX });
            }
            self.wait_for(stream.id, until);
        }
    }

    async fn pass(&mut self, time: Duration) {
        self.let_pass(time);
    }
}

fn answer(status: u16, headers: &[(&'static str, String)], body: Bytes) -> Result<Answer, ConnectionError> {
    let status = StatusCode::from_u16(status).map_err(|error| ConnectionError::Body(error.to_string()))?;
    Ok(Answer { status, headers: header_map(headers)?, body })
}

fn header_map(headers: &[(&'static str, String)]) -> Result<HeaderMap, ConnectionError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::try_from(value).map_err(|error| ConnectionError::Body(error.to_string()))?;
        map.append(HeaderName::from_static(name), value);
    }
    Ok(map)
}
