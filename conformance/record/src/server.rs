//! The server of an exchange: a remote one, or any other that handles requests and lets time pass.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use sindri_cluster::webhook_server::{WebhookAddress, WebhookServer, WebhookServerError};

use crate::connection::{Client, Connection, ConnectionError, EventStream, Framing, read_response};
use crate::protobuf;
use crate::response::FullResponse;
use crate::target::Target;
use crate::webhook::Webhooks;

/// Result of opening a stream.
pub enum Opened<S> {
    /// An open stream.
    Stream {
        /// Status code.
        status: StatusCode,
        /// All headers.
        headers: HeaderMap,
        /// Stream of events.
        stream: S,
    },
    /// A complete response instead.
    Rejected(FullResponse),
}

/// An API server as an exchange sees it.
pub trait Server {
    /// An open stream of events.
    type Stream;

    /// Sends a request and reads the complete response.
    fn send(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<FullResponse, ConnectionError>>;

    /// Sends a request whose response is a stream.
    fn open(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<Opened<Self::Stream>, ConnectionError>>;

    /// Returns the next event of a stream; `None` at its end.
    fn next(&mut self, stream: &mut Self::Stream) -> impl Future<Output = Result<Option<Bytes>, ConnectionError>>;

    /// Lets time pass.
    fn advance(&mut self, time: Duration) -> impl Future<Output = ()>;

    /// Serves webhooks that the server can call, and returns their address.
    fn serve_webhooks(
        &mut self,
        webhooks: Webhooks,
    ) -> impl Future<Output = Result<WebhookAddress, WebhookServerError>>;
}

/// A server that is used again after an exchange.
impl<S: Server> Server for &mut S {
    type Stream = S::Stream;

    fn send(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<FullResponse, ConnectionError>> {
        (**self).send(request)
    }

    fn open(&mut self, request: Request<Bytes>) -> impl Future<Output = Result<Opened<S::Stream>, ConnectionError>> {
        (**self).open(request)
    }

    fn next(&mut self, stream: &mut S::Stream) -> impl Future<Output = Result<Option<Bytes>, ConnectionError>> {
        (**self).next(stream)
    }

    fn advance(&mut self, time: Duration) -> impl Future<Output = ()> {
        (**self).advance(time)
    }

    fn serve_webhooks(
        &mut self,
        webhooks: Webhooks,
    ) -> impl Future<Output = Result<WebhookAddress, WebhookServerError>> {
        (**self).serve_webhooks(webhooks)
    }
}

/// A server behind connections, in real time.
pub struct RemoteServer<'a> {
    target: &'a Target,
    client: Client<'a>,
    webhooks: Option<WebhookServer>,
}

impl<'a> RemoteServer<'a> {
    /// Creates a client; it connects with the first request.
    pub fn new(target: &'a Target) -> Self {
        Self { target, client: Client::new(target), webhooks: None }
    }
}

impl Server for RemoteServer<'_> {
    type Stream = EventStream;

    async fn send(&mut self, request: Request<Bytes>) -> Result<FullResponse, ConnectionError> {
        self.client.send(request.map(Full::new)).await
    }

    async fn open(&mut self, request: Request<Bytes>) -> Result<Opened<EventStream>, ConnectionError> {
        let mut connection = Connection::open(self.target).await?;
        let response = connection.send_for_head(request.map(Full::new)).await?;
        if !response.status().is_success() {
            return Ok(Opened::Rejected(read_response(response).await?));
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let framing = if protobuf::is_protobuf(&headers) { Framing::Lengths } else { Framing::Lines };
        Ok(Opened::Stream { status, headers, stream: EventStream::new(connection, response.into_body(), framing) })
    }

    async fn next(&mut self, stream: &mut EventStream) -> Result<Option<Bytes>, ConnectionError> {
        stream.next().await
    }

    async fn advance(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn serve_webhooks(&mut self, webhooks: Webhooks) -> Result<WebhookAddress, WebhookServerError> {
        let respond = Arc::new(move |path: &str, body: &[u8]| webhooks.reply(path, body));
        let server = self.webhooks.insert(WebhookServer::start(respond).await?);
        Ok(server.address.clone())
    }
}
