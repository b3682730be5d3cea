//! Observation of HTTP exchanges in the simulated network: a listener that records each response of a server at the
//! moment in which the server sends it, before it reaches the client.
//!
//! Reads only the first line of requests and responses. HTTP/1.1 without pipelining: a message begins where the
//! direction of the bytes changes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::engine::{Listener, Stream};
use crate::trace;

/// Longest first line of a message that is kept.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// A request with the status of its response, which is on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpExchange {
    /// Name of the host that sent the response.
    pub server: String,
    /// Name of the host that sent the request.
    pub client: String,
    /// Method of the request.
    pub method: String,
    /// Path of the request with its query.
    pub target: String,
    /// Status of the response.
    pub status: u16,
}

/// Exchanges that were observed and not yet taken.
#[derive(Clone, Default)]
pub struct ExchangeLog(Arc<Mutex<Vec<HttpExchange>>>);

impl ExchangeLog {
    fn lock(&self) -> MutexGuard<'_, Vec<HttpExchange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the exchanges since the last call.
    pub fn take(&self) -> Vec<HttpExchange> {
        std::mem::take(&mut *self.lock())
    }

    /// Wraps the listener of a server.
    pub fn observe(&self, server: &str, listener: Listener) -> ObservedListener {
        ObservedListener { listener, server: server.to_owned(), log: self.clone() }
    }

    fn record(&self, exchange: HttpExchange) {
        let HttpExchange { server, client, method, target, status } = &exchange;
        trace::record(server, &format!("< {client} {method} {target} {status}"));
        self.lock().push(exchange);
    }
}

/// Listener whose connections are observed.
pub struct ObservedListener {
    listener: Listener,
    server: String,
    log: ExchangeLog,
}

impl axum::serve::Listener for ObservedListener {
    type Io = ObservedStream;
    type Addr = ();

    async fn accept(&mut self) -> (ObservedStream, ()) {
        let (stream, ()) = self.listener.accept().await;
        let reader = ExchangeReader::default();
        (ObservedStream { stream, server: self.server.clone(), reader, log: self.log.clone() }, ())
    }

    fn local_addr(&self) -> io::Result<()> {
        self.listener.local_addr()
    }
}

/// Connection of a server that is observed.
pub struct ObservedStream {
    stream: Stream,
    server: String,
    reader: ExchangeReader,
    log: ExchangeLog,
}

impl AsyncRead for ObservedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.reader.receive(&buffer.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for ObservedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = polled
            && let Some((method, target, status)) = self.reader.send(&bytes[..written])
        {
            let (server, client) = (self.server.clone(), self.stream.peer().to_owned());
            self.log.record(HttpExchange { server, client, method, target, status });
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Reads the first lines of the messages of one connection, from the server's side.
#[derive(Default)]
struct ExchangeReader {
    request: FirstLine,
    response: FirstLine,
}

impl ExchangeReader {
    /// Reads bytes of a request. The first ones after a response begin the next request.
    fn receive(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if !self.response.is_empty() {
            *self = Self::default();
        }
        self.request.extend(bytes);
    }

    /// Reads bytes of a response; returns method, target and status as soon as its first line is complete.
    fn send(&mut self, bytes: &[u8]) -> Option<(String, String, u16)> {
        if !self.response.extend(bytes) {
            return None;
        }
        let (request, response) = (self.request.text()?, self.response.text()?);
        let mut request = request.split(' ');
        let (method, target) = (request.next()?.to_owned(), request.next()?.to_owned());
        let status = response.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
        Some((method, target, status))
    }
}

/// First line of a message, which may arrive in parts.
#[derive(Default)]
struct FirstLine {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl FirstLine {
    /// Adds bytes of the message; returns true if they complete the line.
    fn extend(&mut self, bytes: &[u8]) -> bool {
        if self.is_complete {
            return false;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let room = LINE_BYTES_MAX - self.bytes.len();
        let line = &bytes[..end.unwrap_or(bytes.len())];
        self.bytes.extend_from_slice(&line[..line.len().min(room)]);
        self.is_complete = end.is_some();
        self.is_complete
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.is_complete
    }

    fn text(&self) -> Option<&str> {
        if self.is_complete { std::str::from_utf8(&self.bytes).ok().map(str::trim_end) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_response_of_a_connection_is_reported_once_with_its_request() {
        let mut reader = ExchangeReader::default();
        reader.receive(b"GET /api/v1/stacks?a=b HT");
        reader.receive(b"TP/1.1\r\nhost: broker\r\n\r\n");
        assert_eq!(reader.send(b"HTTP/1.1 30"), None);
        let first = Some(("GET".to_owned(), "/api/v1/stacks?a=b".to_owned(), 304));
        assert_eq!(reader.send(b"4 Not Modified\r\n"), first);
        assert_eq!(reader.send(b"etag: x\r\n\r\n"), None);
        reader.receive(b"POST /api/v1/stacks HTTP/1.1\r\n\r\n");
        reader.receive(b"GET /not-a-request HTTP/1.1\r\n");
        let second = Some(("POST".to_owned(), "/api/v1/stacks".to_owned(), 201));
        assert_eq!(reader.send(b"HTTP/1.1 201 Created\r\n\r\n{}"), second);
    }

    #[test]
    fn bytes_that_are_not_http_are_ignored() {
        let mut reader = ExchangeReader::default();
        reader.receive(&[0xff, 0xfe, b'\n']);
        assert_eq!(reader.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), None);
        reader.receive(&[b'x'; 2 * LINE_BYTES_MAX]);
        assert_eq!(reader.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), None);
    }
}
