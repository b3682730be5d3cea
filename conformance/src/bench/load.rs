//! A light source of load: keep-alive connections, one request under way on each, one thread.
//!
//! Requests are bytes that were made before; of an answer only what ends it is looked at. So what is measured is the
//! server, not this.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// How long an answer may take that is not asked to wait.
const ANSWER_MAX: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 64 * 1024;
const EVENTS_MAX: usize = 256;
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Statuses whose answers have no body, whatever their headers say.
const BODILESS: [u16; 2] = [204, 304];

/// Connections to one server.
pub struct Load {
    poll: OwnedFd,
    events: Vec<epoll::Event>,
    connections: Vec<Connection>,
    chunk: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    /// What has arrived of the answer.
    arrived: Vec<u8>,
    /// Where its head ends and where it ends, once that is known.
    ends: Option<(usize, usize)>,
    sent: Instant,
    done: Instant,
}

/// A whole answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    head: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
    /// From the request to the last byte.
    pub took: Duration,
}

impl Answer<'_> {
    /// The value of a header; its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

/// What one server did in one span.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Answers per second.
    pub rate: f64,
    /// The latency that one of a hundred answers exceeds, in milliseconds.
    pub p99: f64,
}

impl Load {
    /// Opens so many connections.
    pub fn connect(address: SocketAddr, count: usize) -> Result<Self, String> {
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| format!("epoll: {error}"))?;
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            let fail = |error: &dyn std::fmt::Display| format!("connection {number} to {address}: {error}");
            let stream = TcpStream::connect(address).map_err(|error| fail(&error))?;
            stream.set_nodelay(true).map_err(|error| fail(&error))?;
            let data = EventData::new_u64(number as u64);
            epoll::add(&poll, &stream, data, EventFlags::IN).map_err(|error| fail(&error))?;
            connections.push(Connection { stream, arrived: Vec::new(), ends: None, sent: now(), done: now() });
        }
        Ok(Self { poll, events: Vec::with_capacity(EVENTS_MAX), connections, chunk: vec![0; READ_BYTES] })
    }

    /// Sends a request; the answer before it is forgotten.
    pub fn send(&mut self, connection: usize, request: &[u8]) -> Result<(), String> {
        let connection = &mut self.connections[connection];
        connection.arrived.clear();
        connection.ends = None;
        connection.sent = now();
        connection.stream.write_all(request).map_err(|error| format!("a request cannot be sent: {error}"))
    }

    /// The connections whose answers became whole within some time; it ends with the first ones.
    pub fn finished(&mut self, within: Duration) -> Result<Vec<usize>, String> {
        let deadline = now() + within;
        let mut finished = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            self.events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut self.events), Some(&timeout)) {
                // A signal is heard elsewhere.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(format!("epoll: {error}")),
            }
            for position in 0..self.events.len() {
                let number = self.events[position].data.u64() as usize;
                if self.connections[number].read(&mut self.chunk)? {
                    finished.push(number);
                }
            }
            if !finished.is_empty() || left.is_zero() {
                return Ok(finished);
            }
        }
    }

    /// The whole answer of a connection, if it has one.
    pub fn answer(&self, connection: usize) -> Option<Answer<'_>> {
        let Connection { arrived, ends, sent, done, .. } = &self.connections[connection];
        let (head, end) = (*ends)?;
        let (head, body) = arrived.get(..end)?.split_at(head);
        Some(Answer { status: status(head)?, head, body, took: *done - *sent })
    }

    /// Keeps one request under way on each connection: `next` gives them, by connection, until it gives none; `seen`
    /// gets the answers.
    pub fn drive<'r>(
        &mut self,
        mut next: impl FnMut(usize) -> Option<Cow<'r, [u8]>>,
        mut seen: impl FnMut(usize, Answer<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut under_way = 0;
        for connection in 0..self.connections.len() {
            if let Some(request) = next(connection) {
                self.send(connection, &request)?;
                under_way += 1;
            }
        }
        while under_way > 0 {
            let finished = self.finished(ANSWER_MAX)?;
            if finished.is_empty() {
                return Err(format!("no answer within {ANSWER_MAX:?}"));
            }
            for connection in finished {
                let answer = self.answer(connection).ok_or("an answer is not HTTP")?;
                seen(connection, answer)?;
                match next(connection) {
                    Some(request) => self.send(connection, &request)?,
                    None => under_way -= 1,
                }
            }
        }
        Ok(())
    }

    /// Sends the requests that `next` gives for some time; every answer must have this status.
    pub fn run_for<'r>(
        &mut self,
        span: Duration,
        status: u16,
        mut next: impl FnMut() -> Cow<'r, [u8]>,
    ) -> Result<Round, String> {
        let start = now();
        let mut latencies = Vec::with_capacity(1 << 16);
        let more = |_: usize| (start.elapsed() < span).then(&mut next);
        self.drive(more, |_, answer| {
            latencies.push(answer.took);
            expect(&answer, status).map(drop)
        })?;
        let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).ok_or("no answer came")?;
        Ok(Round { rate, p99: p99.as_secs_f64() * 1000.0 })
    }

    /// One request on the first connection, and its answer, which must have this status.
    pub fn call(&mut self, request: &[u8], status: u16) -> Result<Answer<'_>, String> {
        self.send(0, request)?;
        let finished = self.finished(ANSWER_MAX)?;
        let answer = finished.first().and_then(|connection| self.answer(*connection));
        expect(&answer.ok_or_else(|| format!("no answer within {ANSWER_MAX:?}"))?, status)
    }
}

impl Connection {
    /// Reads what is there; true when the answer is whole.
    fn read(&mut self, chunk: &mut [u8]) -> Result<bool, String> {
        let count = self.stream.read(chunk).map_err(|error| format!("an answer cannot be read: {error}"))?;
        if count == 0 {
            return Err("the server closed a connection".to_owned());
        }
        self.arrived.extend_from_slice(&chunk[..count]);
        if self.ends.is_none() {
            self.ends = ends(&self.arrived)?;
        }
        let whole = self.ends.is_some_and(|(_, end)| self.arrived.len() >= end);
        if whole {
            self.done = now();
        }
        Ok(whole)
    }
}

/// Sees that an answer has the status that it must have.
pub fn expect<'a>(answer: &Answer<'a>, status: u16) -> Result<Answer<'a>, String> {
    if answer.status == status {
        return Ok(*answer);
    }
    let body: String = String::from_utf8_lossy(answer.body).chars().take(200).collect();
    Err(format!("status {} instead of {status}: {body}", answer.status))
}

/// Where the head of an answer ends, and where the answer does; none while the head is not whole.
fn ends(arrived: &[u8]) -> Result<Option<(usize, usize)>, String> {
    let Some(position) = arrived.windows(HEAD_END.len()).position(|part| part == HEAD_END) else { return Ok(None) };
    let head = position + HEAD_END.len();
    let status = status(&arrived[..head]).ok_or("an answer is not HTTP")?;
    if BODILESS.contains(&status) {
        return Ok(Some((head, head)));
    }
    let length = header(&arrived[..head], "content-length").and_then(|value| value.parse::<usize>().ok());
    Ok(Some((head, head + length.ok_or("an answer does not say how long it is")?)))
}

fn status(head: &[u8]) -> Option<u16> {
    std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let lines = std::str::from_utf8(head).ok()?.split("\r\n").skip(1);
    let named = lines.filter_map(|line| line.split_once(": ")).find(|(known, _)| known.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value)
}

/// A request without a body.
pub fn get(path: &str, key: &str, if_none_match: Option<&str>) -> Vec<u8> {
    let condition = if_none_match.map_or(String::new(), |etag| format!("if-none-match: {etag}\r\n"));
    format!("GET {path} HTTP/1.1\r\nhost: broker\r\nauthorization: Bearer {key}\r\n{condition}\r\n").into_bytes()
}

/// A request with a body.
pub fn post(path: &str, key: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: broker\r\nauthorization: Bearer {key}\r\n");
    format!("{head}content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

/// The real time, for what is measured.
#[expect(clippy::disallowed_methods, reason = "figures are about real time")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_length_has_arrived() {
        let text = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(ends(text), Ok(Some((text.len() - 5, text.len()))));
        assert_eq!(ends(&text[..30]), Ok(None));
        assert_eq!(header(text, "etag"), Some("\"a\""));
        assert_eq!(ends(b"HTTP/1.1 304 Not Modified\r\n\r\n"), Ok(Some((29, 29))));
        assert!(ends(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(ends(b"nonsense\r\n\r\n").is_err());
    }

    #[test]
    fn load_reaches_a_server_and_reads_its_answers() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = listener.accept().unwrap().0;
                for (status, body) in [(200, "abc"), (503, "full")] {
                    let mut request = [0; 1024];
                    assert_ne!(stream.read(&mut request).unwrap(), 0);
                    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
                    // In two parts: an answer need not arrive at once.
                    stream.write_all(head.as_bytes()).unwrap();
                    stream.write_all(body.as_bytes()).unwrap();
                }
            });
            let mut load = Load::connect(address, 1).unwrap();
            assert_eq!(load.call(b"GET / HTTP/1.1\r\n\r\n", 200).unwrap().body, b"abc");
            let error = load.call(b"GET / HTTP/1.1\r\n\r\n", 200).unwrap_err();
            assert_eq!(error, "status 503 instead of 200: full");
            assert!(load.call(b"GET / HTTP/1.1\r\n\r\n", 200).is_err(), "the server is gone");
        });
    }
}
