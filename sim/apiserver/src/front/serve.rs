//! HTTP in front of the machine: connections, watch streams, upgrades, and the tick loop.
//!
//! Speaks HTTP/1.1 over any listener, with hyper directly, because a simulated world must be able to cut a connection
//! without a response; and HTTP/2, if a TLS handshake chose it. The caller provides the clock and the socket. Every task
//! ends when the future of [`serve()`] does.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, Limited, StreamBody};
use hyper::body::Frame;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, rustls};

use super::admin::{self, Admin};
use super::gate::{Admission, Clock, Gate};
use super::http_2;
use super::listener::Listener;
use super::shared::SharedServer;
use super::streams::{serve_streams, upgrade_response};
use super::webhooks::{self, WebhookCaller};
use crate::http::error::ApiError;
use crate::http::media;
use crate::http::request::{BODY_BYTES_MAX, Headers, Request};
use crate::http::response::{Response, WatchId};
use crate::http::subject::Subject;
use crate::http::upgrade::Upgrade;
use crate::http::webhook_call::WebhookAnswers;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The connection must end without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut")]
pub(crate) struct Cut;

pub(crate) type Body = UnsyncBoxBody<Bytes, Cut>;

/// Upgrade to which the last response of a connection has agreed.
#[derive(Clone, Default)]
pub(crate) struct AgreedUpgrade(Arc<Mutex<Option<(Upgrade, OnUpgrade)>>>);

impl AgreedUpgrade {
    fn set(&self, upgrade: Upgrade, connection: OnUpgrade) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, connection));
    }

    fn take(&self) -> Option<(Upgrade, OnUpgrade)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Name of HTTP/2 in TLS handshakes.
pub const HTTP_2: &[u8] = b"h2";
/// Timeout of a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Options of a served port.
#[derive(Clone, Default)]
pub struct Port {
    /// TLS configuration; without it connections are plain. A client certificate authenticates its subject.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Administration API below `/sindri/`.
    pub admin: Option<Admin>,
    /// Calls webhooks; without it, they are unreachable.
    pub webhooks: Option<Arc<dyn WebhookCaller>>,
}

#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) server: SharedServer,
    pub(crate) clock: Clock,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) port: Port,
}

/// Serves the machine until `shutdown` resolves. Open connections and watches end with it.
pub async fn serve<L>(
    listener: L,
    server: SharedServer,
    clock: Clock,
    gate: Arc<dyn Gate>,
    shutdown: impl Future<Output = ()>,
) where
    L: Listener,
{
    serve_port(listener, server, clock, gate, Port::default(), shutdown).await;
}

/// Serves the machine as [`serve()`] does, on a port that may be encrypted and may have an administrator.
pub async fn serve_port<L>(
    mut listener: L,
    server: SharedServer,
    clock: Clock,
    gate: Arc<dyn Gate>,
    port: Port,
    shutdown: impl Future<Output = ()>,
) where
    L: Listener,
{
    let front = Front { server, clock, gate, port };
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut ticking = pin!(tick(&front));
    loop {
        // Shutdown first, so that a flood of connections cannot delay it; then ticks; then ended connections; then new ones.
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            never = &mut ticking => match never {},
            Some(_ended) = connections.join_next() => {}
            stream = listener.accept() => {
                connections.spawn(connection(stream, front.clone()));
            }
        }
    }
}

/// Runs the controllers when their tasks are due.
pub(crate) async fn tick(front: &Front) -> Infallible {
    loop {
        let mut changed = pin!(front.server.changed());
        changed.as_mut().enable();
        let now = (front.clock)();
        let next = front.server.with(|machine| {
            machine.tick(now);
            machine.next_tick()
        });
        tokio::select! {
            biased;
            () = changed => {}
            () = sleep_until(now, next) => {}
        }
    }
}

async fn sleep_until(now: Timestamp, next: Option<Timestamp>) {
    match next {
        None => std::future::pending().await,
        Some(next) => {
            let wait = Duration::try_from(next.duration_since(now)).unwrap_or(Duration::ZERO);
            tokio::time::sleep(wait).await;
        }
    }
}

async fn connection<S>(stream: S, front: Front)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = front.port.tls.clone() else { return serve_connection(stream, front, None).await };
    let shaken = tokio::time::timeout(HANDSHAKE_MAX, TlsAcceptor::from(tls).accept(stream)).await;
    // A client whose handshake fails or takes too long is not served.
    let Ok(Ok(stream)) = shaken else { return };
    let session = stream.get_ref().1;
    let subject = session.peer_certificates().and_then(|chain| Subject::from_certificate(chain.first()?));
    if session.alpn_protocol() == Some(HTTP_2) {
        let service = service_fn(move |request| respond(front.clone(), subject.clone(), request, None));
        http_2::serve_connection(stream, service).await;
    } else {
        serve_connection(stream, front, subject).await;
    }
}

async fn serve_connection<S>(stream: S, front: Front, subject: Option<Subject>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (server, agreed) = (front.server.clone(), AgreedUpgrade::default());
    let service = service_fn(|request| respond(front.clone(), subject.clone(), request, Some(agreed.clone())));
    let mut builder = http1::Builder::new();
    // The date would come from the wall clock.
    builder.auto_date_header(false);
    // A broken connection is handled by the client, which may retry.
    let _broken = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    if let Some((upgrade, connection)) = agreed.take()
        && let Ok(connection) = connection.await
    {
        serve_streams(&server, upgrade, connection).await;
    }
}

/// Responds to a request from a connection, which may be upgraded, or from a sandbox client.
pub(crate) async fn respond<B>(
    front: Front,
    subject: Option<Subject>,
    mut request: http::Request<B>,
    agreed: Option<AgreedUpgrade>,
) -> Result<http::Response<Body>, Cut>
where
    B: hyper::body::Body,
    B::Error: Into<BoxError>,
{
    let connection = hyper::upgrade::on(&mut request);
    let mut request = match read(request).await? {
        Ok(request) => request,
        Err(error) => return to_http_response(&front, error),
    };
    request.headers.certificate = subject;
    if let (Some(admin), true) = (&front.port.admin, request.path.starts_with(admin::PREFIX)) {
        let now = (front.clock)();
        let rejection = front.server.with(|machine| machine.reject_unless_administrator(now, &request));
        return to_http_response(&front, rejection.unwrap_or_else(|| admin.respond(&front.server, &request)));
    }
    let Admission { delay, fault } = front.gate.admit((front.clock)(), &request);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let caller = front.port.webhooks.as_deref();
    let response = webhooks::handle(&front.server, &front.clock, caller, &request, fault.as_ref()).await;
    front.gate.observe_response((front.clock)(), &request, &response);
    match (response, agreed) {
        (Response::Upgrade(upgrade), Some(agreed)) => {
            let body = Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync();
            let response = upgrade_response(&upgrade, body);
            agreed.set(*upgrade, connection);
            Ok(response)
        }
        (response, _) => to_http_response(&front, response),
    }
}

/// Reads a whole request. The inner error is a response that is sent at once.
async fn read<B>(request: http::Request<B>) -> Result<Result<Request, Response>, Cut>
where
    B: hyper::body::Body,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut read = match Request::new(parts.method, target) {
        Ok(read) => read,
        Err(error) => return Ok(Err(ApiError::bad_request(error.to_string()).into_response())),
    };
    read.headers = Headers::read(&parts.headers);
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => {
            read.body = body.to_bytes();
            Ok(Ok(read))
        }
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let response = ApiError::too_large(BODY_BYTES_MAX).into_response();
            Ok(Err(response.in_notation(media::plain_notation(&read))))
        }
        Err(_broken) => Err(Cut),
    }
}

fn to_http_response(front: &Front, response: Response) -> Result<http::Response<Body>, Cut> {
    let (status, headers, body) = match response {
        Response::Cut => return Err(Cut),
        Response::Upgrade(_) => {
            let error = ApiError::internal("streams of pods need a connection that can be upgraded");
            return to_http_response(front, error.into_response());
        }
        Response::Full { status, headers, body } => {
            (status, headers, Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync())
        }
        Response::Watch(id) => {
            let headers = front.server.with(|machine| machine.watch_headers(id));
            (200, headers, StreamBody::new(events(front.clone(), id)).boxed_unsync())
        }
    };
    let mut converted = http::Response::new(body);
    *converted.status_mut() = http::StatusCode::from_u16(status).map_err(|_| Cut)?;
    for (name, value) in headers {
        // A header is not worth a cut connection after the request has taken effect.
        if let Ok(value) = http::HeaderValue::from_str(&value) {
            converted.headers_mut().append(name, value);
        }
    }
    Ok(converted)
}

/// An open watch, which is closed when the client disconnects.
struct OpenWatch {
    front: Front,
    id: WatchId,
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.front.server.with(|machine| machine.close_watch(self.id));
    }
}

fn events(front: Front, id: WatchId) -> impl Stream<Item = Result<Frame<Bytes>, Cut>> + Send {
    stream::unfold(Some(OpenWatch { front, id }), |watch| async move {
        let watch = watch?;
        match next_lines(&watch).await {
            Some(lines) => Some((Ok(Frame::data(lines)), Some(watch))),
            None if watch.front.server.with(|machine| machine.watch_is_cut(watch.id)) => {
                // The pending events are sent before the connection breaks.
                tokio::task::yield_now().await;
                Some((Err(Cut), None))
            }
            None => None,
        }
    })
}

/// Returns the next events of a watch, or `None` when it has ended.
async fn next_lines(watch: &OpenWatch) -> Option<Bytes> {
    let mut answers = WebhookAnswers::default();
    loop {
        let mut changed = pin!(watch.front.server.changed());
        changed.as_mut().enable();
        let now = (watch.front.clock)();
        let read = watch.front.server.with(|machine| {
            let calls = machine.watch_calls(watch.id, &answers);
            if !calls.is_empty() {
                return Err(calls);
            }
            let lines = machine.watch_events(watch.id, now);
            Ok((lines, machine.watch_is_closed(watch.id), machine.watch_wakes_at(watch.id)))
        });
        let (lines, closed, wakes_at) = match read {
            Ok(read) => read,
            Err(calls) => {
                let end = tokio::time::Instant::now() + webhooks::REQUEST_MAX;
                webhooks::call_all(watch.front.port.webhooks.as_deref(), &calls, end, &mut answers).await;
                continue;
            }
        };
        if !lines.is_empty() {
            return Some(lines.concat().into());
        }
        if closed {
            return None;
        }
        tokio::select! {
            biased;
            () = changed => {}
            () = sleep_until(now, wakes_at) => {}
        }
    }
}
