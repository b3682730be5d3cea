//! Who answers an exchange: a server behind connections, or any other that can be asked and can let time pass.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;

use crate::answer::Answer;
use crate::connection::{Client, Connection, ConnectionError, Framing, Lines, whole};
use crate::protobuf;
use crate::target::Target;

/// What came of opening a stream.
pub enum Opened<S> {
    /// It is open.
    Stream {
        /// The status code.
        status: StatusCode,
        /// Every header.
        headers: HeaderMap,
        /// Where events come from.
        stream: S,
    },
    /// There was an answer instead.
    Refused(Answer),
}

/// An API server as an exchange sees it.
pub trait Server {
    /// An open stream of events.
    type Stream;

    /// Sends a request and reads the whole answer.
    fn send(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<Answer, ConnectionError>>;

    /// Sends a request whose answer goes on.
    fn open(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<Opened<Self::Stream>, ConnectionError>>;

    /// The next line of a stream, or nothing if the server ended it.
    fn next(&mut self, stream: &mut Self::Stream) -> impl Future<Output = Result<Option<Bytes>, ConnectionError>>;

    /// Lets time pass.
    fn pass(&mut self, time: Duration) -> impl Future<Output = ()>;
}

/// A server that goes on after an exchange.
impl<S: Server> Server for &mut S {
    type Stream = S::Stream;

    fn send(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<Answer, ConnectionError>> {
        (**self).send(request)
    }

    fn open(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<Opened<S::Stream>, ConnectionError>> {
        (**self).open(request)
    }

    fn next(&mut self, stream: &mut S::Stream) -> impl Future<Output = Result<Option<Bytes>, ConnectionError>> {
        (**self).next(stream)
    }

    fn pass(&mut self, time: Duration) -> impl Future<Output = ()> {
        (**self).pass(time)
    }
}

/// A server that is reached over connections, in real time.
pub struct Connected<'a> {
    target: &'a Target,
    client: Client<'a>,
}

impl<'a> Connected<'a> {
    /// Not connected yet.
    pub fn new(target: &'a Target) -> Self {
        Self { target, client: Client::new(target) }
    }
}

impl Server for Connected<'_> {
    type Stream = Lines;

    async fn send(&mut self, request: Request<Bytes>) -> Result<Answer, ConnectionError> {
        self.client.send(request.map(Full::new)).await
    }

    async fn open(&mut self, request: Request<Bytes>) -> Result<Opened<Lines>, ConnectionError> {
        let mut connection = Connection::open(self.target).await?;
        let response = connection.begin(request.map(Full::new)).await?;
        if !response.status().is_success() {
            return Ok(Opened::Refused(whole(response).await?));
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let framing = if protobuf::is_in(&headers) { Framing::Lengths } else { Framing::Lines };
        Ok(Opened::Stream { status, headers, stream: Lines::new(connection, response.into_body(), framing) })
    }

    async fn next(&mut self, stream: &mut Lines) -> Result<Option<Bytes>, ConnectionError> {
        stream.next().await
    }

    async fn pass(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
