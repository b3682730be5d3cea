//! Connections to the API server: HTTP/1.1, one request after the other, with exactly the given headers.
//!
//! A connection is driven by a task that ends with it. Every wait has a timeout.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::response::FullResponse;
use crate::target::Target;

/// Timeout of connecting.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Timeout of a response. The server's own timeout is a minute.
const RESPONSE_MAX: Duration = Duration::from_secs(70);
/// Timeout of the next event of a stream. Bookmarks come once a minute.
const EVENT_MAX: Duration = Duration::from_secs(20);
/// Maximum size of a body: the OpenAPI document of a cluster has a few megabytes.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request without a response.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// No connection, or a failed TLS handshake.
    #[error("no connection to {authority}: {reason}")]
    Connect {
        /// Host and port.
        authority: String,
        /// Cause.
        reason: String,
    },
    /// The connection failed, or the server does not speak HTTP.
    #[error("the connection failed: {0}")]
    Broken(#[from] hyper::Error),
    /// The server closed the connection without a response.
    #[error("the server closed the connection")]
    Cut,
    /// The body is too large or incomplete.
    #[error("the response cannot be read: {0}")]
    Body(String),
    /// Timeout.
    #[error("no {what} within {max:?}")]
    TimedOut {
        /// Awaited part.
        what: &'static str,
        /// Time.
        max: Duration,
    },
}

impl ConnectionError {
    /// Returns true if the server got the request and closed the connection without a response.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut => true,
            Self::Broken(error) => error.is_incomplete_message(),
            Self::Connect { .. } | Self::Body(_) | Self::TimedOut { .. } => false,
        }
    }
}

/// One connection, for one request at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Task that drives the connection; it ends when this is dropped.
    _driver: JoinSet<()>,
}

impl Connection {
    /// Connects to the server.
    pub async fn open(target: &Target) -> Result<Self, ConnectionError> {
        let failed = |reason: String| ConnectionError::Connect { authority: target.authority.clone(), reason };
        let connected = timeout(CONNECT_MAX, async {
            let stream = TcpStream::connect(&target.authority).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = &target.tls else { return Ok(Stream::Plain(stream)) };
            let connector = TlsConnector::from(tls.config.clone());
            connector.connect(tls.name.clone(), stream).await.map(Box::new).map(Stream::Encrypted)
        });
        let stream = connected.await.map_err(|_| failed(format!("timeout after {CONNECT_MAX:?}")))?;
        match stream.map_err(|error: std::io::Error| failed(error.to_string()))? {
            Stream::Plain(stream) => Self::handshake(stream).await,
            Stream::Encrypted(stream) => Self::handshake(*stream).await,
        }
    }

    async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, ConnectionError> {
        let (sender, connection) =
            http1::Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        // A failure is returned by the request that is in flight.
        driver.spawn(async move { drop(connection.await) });
        Ok(Self { sender, _driver: driver })
    }

    /// Returns the connection if another request can be sent on it.
    async fn into_reusable(mut self) -> Option<Self> {
        self.sender.ready().await.is_ok().then_some(self)
    }

    /// Sends a request and waits for the head of the response.
    pub async fn send_for_head(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectionError> {
        let response = timeout(RESPONSE_MAX, self.sender.send_request(request)).await;
        Ok(response.map_err(|_| ConnectionError::TimedOut { what: "response", max: RESPONSE_MAX })??)
    }

    /// Sends a request and reads the complete response.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<FullResponse, ConnectionError> {
        read_response(self.send_for_head(request).await?).await
    }
}

/// Sends one request after the other, on the same connection while the server keeps it open.
pub struct Client<'a> {
    target: &'a Target,
    connection: Option<Connection>,
}

impl<'a> Client<'a> {
    /// Creates a client; it connects with the first request.
    pub fn new(target: &'a Target) -> Self {
        Self { target, connection: None }
    }

    /// Sends a request and reads the complete response.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<FullResponse, ConnectionError> {
        let reusable = match self.connection.take() {
            Some(connection) => connection.into_reusable().await,
            None => None,
        };
        let mut connection = match reusable {
            Some(connection) => connection,
            None => Connection::open(self.target).await?,
        };
        let response = connection.send(request).await?;
        self.connection = Some(connection);
        Ok(response)
    }
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Reads a response to its end.
pub async fn read_response(response: Response<Incoming>) -> Result<FullResponse, ConnectionError> {
    let (head, body) = response.into_parts();
    let read = timeout(RESPONSE_MAX, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let read = read.map_err(|_| ConnectionError::TimedOut { what: "end of the response", max: RESPONSE_MAX })?;
    let body = read.map_err(|error| ConnectionError::Body(error.to_string()))?.to_bytes();
    Ok(FullResponse { status: head.status, headers: head.headers, body })
}

/// Separation of the events of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each event is a line.
    Lines,
    /// Each event follows its length in four bytes.
    Lengths,
}

/// Size of a length.
const LENGTH_BYTES: usize = 4;

/// A response that continues: one line or protobuf message for each event.
pub struct EventStream {
    framing: Framing,
    body: Incoming,
    read: BytesMut,
    /// Connection of the stream.
    _connection: Connection,
}

impl EventStream {
    /// Reads the events of a body on its own connection.
    pub fn new(connection: Connection, body: Incoming, framing: Framing) -> Self {
        Self { framing, body, read: BytesMut::new(), _connection: connection }
    }

    /// Returns the end of the first event, if it is complete.
    fn event_end(&self) -> Option<usize> {
        match self.framing {
            Framing::Lines => self.read.iter().position(|byte| *byte == b'\n').map(|end| end + 1),
            Framing::Lengths => {
                let length = u32::from_be_bytes(*self.read.first_chunk::<LENGTH_BYTES>()?);
                let end = usize::try_from(length).ok()?.checked_add(LENGTH_BYTES)?;
                (self.read.len() >= end).then_some(end)
            }
        }
    }

    /// Returns the next line, or message with its length; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        let line = timeout(EVENT_MAX, self.next_unbounded()).await;
        line.map_err(|_| ConnectionError::TimedOut { what: "event", max: EVENT_MAX })?
    }

    async fn next_unbounded(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        loop {
            if let Some(end) = self.event_end() {
                return Ok(Some(self.read.split_to(end).freeze()));
            }
            if self.read.len() > BODY_BYTES_MAX {
                return Err(ConnectionError::Body("an event is too large".to_owned()));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Some(data) = frame?.data_ref() {
                        self.read.extend_from_slice(data);
                    }
                }
            }
        }
    }
}
