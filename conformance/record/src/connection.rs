//! Connections to the API server: HTTP/1.1, one request after the other, with exactly the headers that are given.
//!
//! A connection's own work is a task that ends with the connection. Every wait is bounded.

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

use crate::answer::Answer;
use crate::target::Target;

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take. The server itself gives up after a minute.
const ANSWER_MAX: Duration = Duration::from_secs(70);
/// How long the next line of a stream may take. Bookmarks come once a minute.
const LINE_MAX: Duration = Duration::from_secs(20);
/// The largest body that is read: OpenAPI of a whole cluster is a few megabytes.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request that got no answer.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// Nobody there, or not the right one.
    #[error("no connection to {authority}: {reason}")]
    Connect {
        /// Where.
        authority: String,
        /// What failed.
        reason: String,
    },
    /// The connection broke or the other side does not speak HTTP.
    #[error("the connection failed: {0}")]
    Broken(#[from] hyper::Error),
    /// The server ended the connection instead of answering.
    #[error("the connection was cut")]
    Cut,
    /// The body is too large or ended early.
    #[error("the answer cannot be read: {0}")]
    Body(String),
    /// The time was up.
    #[error("no {what} within {max:?}")]
    TooLong {
        /// What was awaited.
        what: &'static str,
        /// For how long.
        max: Duration,
    },
}

impl ConnectionError {
    /// Whether the server got the request and ended the connection without an answer.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut => true,
            Self::Broken(error) => error.is_incomplete_message(),
            Self::Connect { .. } | Self::Body(_) | Self::TooLong { .. } => false,
        }
    }
}

/// One connection, for one request at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// Holds the task that moves the bytes; it ends when this is dropped.
    _driver: JoinSet<()>,
}

impl Connection {
    /// Connects.
    pub async fn open(target: &Target) -> Result<Self, ConnectionError> {
        let failed = |reason: String| ConnectionError::Connect { authority: target.authority.clone(), reason };
        let connected = timeout(CONNECT_MAX, async {
            let stream = TcpStream::connect(&target.authority).await?;
            stream.set_nodelay(true)?;
            let Some(encryption) = &target.encryption else { return Ok(Stream::Plain(stream)) };
            let connector = TlsConnector::from(encryption.config.clone());
            connector.connect(encryption.name.clone(), stream).await.map(Box::new).map(Stream::Encrypted)
        });
        let stream = connected.await.map_err(|_| failed("it took too long".to_owned()))?;
        match stream.map_err(|error: std::io::Error| failed(error.to_string()))? {
            Stream::Plain(stream) => Self::over(stream).await,
            Stream::Encrypted(stream) => Self::over(*stream).await,
        }
    }

    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, ConnectionError> {
        let (sender, connection) =
            http1::Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        // How it ended is told by the request that it ended.
        driver.spawn(async move { drop(connection.await) });
        Ok(Self { sender, _driver: driver })
    }

    /// The connection, if another request can be sent over it.
    async fn reusable(mut self) -> Option<Self> {
        self.sender.ready().await.is_ok().then_some(self)
    }

    /// Sends a request and waits for the head of the answer.
    pub async fn begin(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ConnectionError> {
        let answered = timeout(ANSWER_MAX, self.sender.send_request(request)).await;
        Ok(answered.map_err(|_| ConnectionError::TooLong { what: "answer", max: ANSWER_MAX })??)
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, ConnectionError> {
        whole(self.begin(request).await?).await
    }
}

/// Sends one request after the other, over the same connection as long as the server keeps it.
pub struct Client<'a> {
    target: &'a Target,
    connection: Option<Connection>,
}

impl<'a> Client<'a> {
    /// Not connected yet.
    pub fn new(target: &'a Target) -> Self {
        Self { target, connection: None }
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, ConnectionError> {
        let kept = match self.connection.take() {
            Some(connection) => connection.reusable().await,
            None => None,
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::open(self.target).await?,
        };
        let answer = connection.send(request).await?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Reads an answer to its end.
pub async fn whole(response: Response<Incoming>) -> Result<Answer, ConnectionError> {
    let (head, body) = response.into_parts();
    let read = timeout(ANSWER_MAX, Limited::new(body, BODY_BYTES_MAX).collect()).await;
    let read = read.map_err(|_| ConnectionError::TooLong { what: "end of the answer", max: ANSWER_MAX })?;
    let body = read.map_err(|error| ConnectionError::Body(error.to_string()))?.to_bytes();
    Ok(Answer { status: head.status, headers: head.headers, body })
}

/// How one event of a stream is told from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each is a line.
    Lines,
    /// Each has its length before it, in four bytes.
    Lengths,
}

/// How many bytes a length takes.
const LENGTH_BYTES: usize = 4;

/// An answer that goes on: one line or message for each event.
pub struct Lines {
    framing: Framing,
    body: Incoming,
    read: BytesMut,
    /// The connection that the lines come over.
    _connection: Connection,
}

impl Lines {
    /// The lines of a body, over its own connection.
    pub fn new(connection: Connection, body: Incoming, framing: Framing) -> Self {
        Self { framing, body, read: BytesMut::new(), _connection: connection }
    }

    /// Where the first event ends, if all of it is there.
    fn end(&self) -> Option<usize> {
        match self.framing {
            Framing::Lines => self.read.iter().position(|byte| *byte == b'\n').map(|end| end + 1),
            Framing::Lengths => {
                let length = u32::from_be_bytes(*self.read.first_chunk::<LENGTH_BYTES>()?);
                let end = usize::try_from(length).ok()?.checked_add(LENGTH_BYTES)?;
                (self.read.len() >= end).then_some(end)
            }
        }
    }

    /// The next line, or message with its length, or nothing if the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        let line = timeout(LINE_MAX, self.next_unbounded()).await;
        line.map_err(|_| ConnectionError::TooLong { what: "event", max: LINE_MAX })?
    }

    async fn next_unbounded(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        loop {
            if let Some(end) = self.end() {
                return Ok(Some(self.read.split_to(end).freeze()));
            }
            if self.read.len() > BODY_BYTES_MAX {
                return Err(ConnectionError::Body("an event without an end".to_owned()));
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
