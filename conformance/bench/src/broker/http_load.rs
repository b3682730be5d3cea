//! A load generator that costs little itself: keep-alive connections with one request in flight on each, on one thread.
//!
//! Requests are prepared bytes; of a response only the status and the length are parsed.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::clock::now;

/// Timeout of a request that does not ask the server to wait.
const RESPONSE_MAX: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 64 * 1024;
const EVENTS_MAX: usize = 256;
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Statuses whose responses have no body, independent of their headers.
const WITHOUT_BODY: [u16; 2] = [204, 304];

/// Connections to one server.
pub struct LoadGenerator {
    poll: OwnedFd,
    events: Vec<epoll::Event>,
    connections: Vec<Connection>,
    chunk: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    /// Received bytes of the response.
    received: Vec<u8>,
    /// Length of the head and of the whole response, once the head is complete.
    lengths: Option<(usize, usize)>,
    sent: Instant,
    done: Instant,
}

/// A complete response.
#[derive(Clone, Copy, Debug)]
pub struct LoadResponse<'a> {
    /// Status.
    pub status: u16,
    head: &'a [u8],
    /// Body.
    pub body: &'a [u8],
    /// Time from the request to the last byte.
    pub took: Duration,
}

impl LoadResponse<'_> {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

/// Throughput and latency of one server in one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Responses per second.
    pub rate: f64,
    /// 99th percentile of the latency, in milliseconds.
    pub p99: f64,
}

impl LoadGenerator {
    /// Opens connections.
    pub fn connect(address: SocketAddr, count: usize) -> Result<Self, String> {
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| format!("epoll: {error}"))?;
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            let fail = |error: &dyn std::fmt::Display| format!("connection {number} to {address}: {error}");
            let stream = TcpStream::connect(address).map_err(|error| fail(&error))?;
            stream.set_nodelay(true).map_err(|error| fail(&error))?;
            let data = EventData::new_u64(number as u64);
            epoll::add(&poll, &stream, data, EventFlags::IN).map_err(|error| fail(&error))?;
            connections.push(Connection { stream, received: Vec::new(), lengths: None, sent: now(), done: now() });
        }
        Ok(Self { poll, events: Vec::with_capacity(EVENTS_MAX), connections, chunk: vec![0; READ_BYTES] })
    }

    /// Sends a request on a connection, and discards the previous response.
    pub fn send(&mut self, connection: usize, request: &[u8]) -> Result<(), String> {
        let connection = &mut self.connections[connection];
        connection.received.clear();
        connection.lengths = None;
        connection.sent = now();
        connection.stream.write_all(request).map_err(|error| format!("a request cannot be sent: {error}"))
    }

    /// Waits until at least one response is complete, at most for this time. Returns the connections whose responses are.
    pub fn wait_for_responses(&mut self, within: Duration) -> Result<Vec<usize>, String> {
        let deadline = now() + within;
        let mut finished = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            self.events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut self.events), Some(&timeout)) {
                // Signals are handled by the runtime.
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

    /// Returns the response of a connection, if it is complete.
    pub fn response(&self, connection: usize) -> Option<LoadResponse<'_>> {
        let Connection { received, lengths, sent, done, .. } = &self.connections[connection];
        let (head, end) = (*lengths)?;
        let (head, body) = received.get(..end)?.split_at(head);
        Some(LoadResponse { status: status(head)?, head, body, took: *done - *sent })
    }

    /// Keeps one request in flight on each connection: `next` returns the next request of a connection or `None`, and
    /// `on_response` gets the responses.
    pub fn run<'r>(
        &mut self,
        mut next: impl FnMut(usize) -> Option<Cow<'r, [u8]>>,
        mut on_response: impl FnMut(usize, LoadResponse<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut in_flight = 0;
        for connection in 0..self.connections.len() {
            if let Some(request) = next(connection) {
                self.send(connection, &request)?;
                in_flight += 1;
            }
        }
        while in_flight > 0 {
            let finished = self.wait_for_responses(RESPONSE_MAX)?;
            if finished.is_empty() {
                return Err(format!("no response within {RESPONSE_MAX:?}"));
            }
            for connection in finished {
                let response = self.response(connection).ok_or("a response is not HTTP")?;
                on_response(connection, response)?;
                match next(connection) {
                    Some(request) => self.send(connection, &request)?,
                    None => in_flight -= 1,
                }
            }
        }
        Ok(())
    }

    /// Sends the requests that `next` returns for some time. Every response must have this status.
    pub fn run_for<'r>(
        &mut self,
        span: Duration,
        status: u16,
        mut next: impl FnMut() -> Cow<'r, [u8]>,
    ) -> Result<Throughput, String> {
        let start = now();
        let mut latencies = Vec::with_capacity(1 << 16);
        let more = |_: usize| (start.elapsed() < span).then(&mut next);
        self.run(more, |_, response| {
            latencies.push(response.took);
            expect_status(&response, status).map(drop)
        })?;
        let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).ok_or("there was no response")?;
        Ok(Throughput { rate, p99: p99.as_secs_f64() * 1000.0 })
    }

    /// Sends one request on the first connection and returns its response, which must have this status.
    pub fn call(&mut self, request: &[u8], status: u16) -> Result<LoadResponse<'_>, String> {
        self.send(0, request)?;
        let finished = self.wait_for_responses(RESPONSE_MAX)?;
        let response = finished.first().and_then(|connection| self.response(*connection));
        expect_status(&response.ok_or_else(|| format!("no response within {RESPONSE_MAX:?}"))?, status)
    }
}

impl Connection {
    /// Reads available bytes. Returns true when the response is complete.
    fn read(&mut self, chunk: &mut [u8]) -> Result<bool, String> {
        let count = self.stream.read(chunk).map_err(|error| format!("a response cannot be read: {error}"))?;
        if count == 0 {
            return Err("the server closed a connection".to_owned());
        }
        self.received.extend_from_slice(&chunk[..count]);
        if self.lengths.is_none() {
            self.lengths = parse_lengths(&self.received)?;
        }
        let is_complete = self.lengths.is_some_and(|(_, end)| self.received.len() >= end);
        if is_complete {
            self.done = now();
        }
        Ok(is_complete)
    }
}

/// Checks the status of a response.
pub fn expect_status<'a>(response: &LoadResponse<'a>, status: u16) -> Result<LoadResponse<'a>, String> {
    if response.status == status {
        return Ok(*response);
    }
    let body: String = String::from_utf8_lossy(response.body).chars().take(200).collect();
    Err(format!("status {} instead of {status}: {body}", response.status))
}

/// Returns the length of the head and of the whole response; `None` while the head is incomplete.
fn parse_lengths(received: &[u8]) -> Result<Option<(usize, usize)>, String> {
    let Some(position) = received.windows(HEAD_END.len()).position(|part| part == HEAD_END) else { return Ok(None) };
    let head = position + HEAD_END.len();
    let status = status(&received[..head]).ok_or("a response is not HTTP")?;
    if WITHOUT_BODY.contains(&status) {
        return Ok(Some((head, head)));
    }
    let length = header(&received[..head], "content-length").and_then(|value| value.parse::<usize>().ok());
    Ok(Some((head, head + length.ok_or("a response has no Content-Length")?)))
}

fn status(head: &[u8]) -> Option<u16> {
    std::str::from_utf8(head.get(9..12)?).ok()?.parse().ok()
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let lines = std::str::from_utf8(head).ok()?.split("\r\n").skip(1);
    let named = lines.filter_map(|line| line.split_once(": ")).find(|(known, _)| known.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value)
}

/// Returns a GET request.
pub fn get(path: &str, key: &str, if_none_match: Option<&str>) -> Vec<u8> {
    let condition = if_none_match.map_or(String::new(), |etag| format!("if-none-match: {etag}\r\n"));
    format!("GET {path} HTTP/1.1\r\nhost: broker\r\nauthorization: Bearer {key}\r\n{condition}\r\n").into_bytes()
}

/// Returns a POST request.
pub fn post(path: &str, key: &str, content_type: &str, body: &str) -> Vec<u8> {
    write("POST", path, key, content_type, body)
}

/// Returns a PUT request.
pub fn put(path: &str, key: &str, content_type: &str, body: &str) -> Vec<u8> {
    write("PUT", path, key, content_type, body)
}

fn write(method: &str, path: &str, key: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: broker\r\nauthorization: Bearer {key}\r\n");
    format!("{head}content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_complete_when_its_content_length_is_received() {
        let text = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(parse_lengths(text), Ok(Some((text.len() - 5, text.len()))));
        assert_eq!(parse_lengths(&text[..30]), Ok(None));
        assert_eq!(header(text, "etag"), Some("\"a\""));
        assert_eq!(parse_lengths(b"HTTP/1.1 304 Not Modified\r\n\r\n"), Ok(Some((29, 29))));
        assert!(parse_lengths(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(parse_lengths(b"nonsense\r\n\r\n").is_err());
    }

    #[test]
    fn the_load_generator_sends_requests_and_reads_responses() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = listener.accept().unwrap().0;
                for (status, body) in [(200, "abc"), (503, "full")] {
                    let mut request = [0; 1024];
                    assert_ne!(stream.read(&mut request).unwrap(), 0);
                    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
                    // In two parts: a response may arrive in several reads.
                    stream.write_all(head.as_bytes()).unwrap();
                    stream.write_all(body.as_bytes()).unwrap();
                }
            });
            let mut load = LoadGenerator::connect(address, 1).unwrap();
            assert_eq!(load.call(b"GET / HTTP/1.1\r\n\r\n", 200).unwrap().body, b"abc");
            let error = load.call(b"GET / HTTP/1.1\r\n\r\n", 200).unwrap_err();
            assert_eq!(error, "status 503 instead of 200: full");
            assert!(load.call(b"GET / HTTP/1.1\r\n\r\n", 200).is_err(), "the server is gone");
        });
    }
}
