//! One connection, from the TLS handshake to its last response.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use futures_util::future::Either;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::body::{ResponseBody, TimedBody};
use super::deadlines::{Deadlines, TimeLimit, TimedStream};
use super::limits::Limits;
use crate::api::DirectPoll;
use crate::api::http::connection_info::{BodyTimeoutFlag, PeerAddress};
use crate::broker::Broker;
use crate::metrics::{CloseReason, Metrics};

/// Limit on the head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Limit on each buffer of a connection; larger bodies pass through in parts.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// The parts of a server that every connection needs.
pub(super) struct ServerContext {
    pub broker: Broker,
    pub router: Router,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
}

/// Serves a connection without TLS.
pub(super) async fn serve_plain<S>(
    stream: S,
    peer: Option<IpAddr>,
    context: Arc<ServerContext>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = context.metrics.open_connection();
    serve_http(stream, peer, &context, shutdown).await;
}

/// Serves a connection with TLS.
pub(super) async fn serve_encrypted<S>(
    stream: S,
    tls: TlsAcceptor,
    peer: Option<IpAddr>,
    context: Arc<ServerContext>,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = context.metrics.open_connection();
    let handshake = timeout(context.limits.handshake_time_max, tls.accept(stream));
    let stream = tokio::select! {
        biased; // Shutdown first: there is no request yet.
        () = shutdown.cancelled() => return,
        stream = handshake => stream,
    };
    match stream {
        Ok(Ok(stream)) => serve_http(stream, peer, &context, shutdown).await,
        Ok(Err(_)) | Err(_) => context.metrics.record_closed_connection(CloseReason::Handshake),
    }
}

/// Serves HTTP until either side closes the connection.
async fn serve_http<S>(stream: S, peer: Option<IpAddr>, context: &ServerContext, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let deadlines = Deadlines::new(context.limits);
    let service = service_fn(|request| respond(context, &deadlines, peer, request));
    let stream = TokioIo::new(TimedStream::new(stream, deadlines.clone()));
    let mut protocol = http1::Builder::new();
    // `Deadlines` distinguishes a slow head from an idle connection; the timeout of hyper does not.
    protocol.header_read_timeout(None).max_buf_size(BUFFER_BYTES_MAX).max_header_size(HEAD_BYTES_MAX);
    let mut connection = pin!(protocol.serve_connection(stream, service));
    let mut exceeded = pin!(deadlines.wait_until_exceeded());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased; // Shutdown first, so that no further request begins. Deadlines after the reads and writes that move them.
            () = shutdown.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            // Ignored: a client that disconnects or does not speak HTTP. Errors of handlers are responses.
            _ended = connection.as_mut() => return,
            limit = &mut exceeded => return record_closed(limit, &context.metrics),
        }
    }
}

fn record_closed(limit: TimeLimit, metrics: &Metrics) {
    match limit {
        TimeLimit::Head => metrics.record_closed_connection(CloseReason::SlowHead),
        TimeLimit::Stall => metrics.record_closed_connection(CloseReason::SlowResponse),
        // An idle connection is closed regularly.
        TimeLimit::Idle => {}
    }
}

fn respond<'a>(
    context: &'a ServerContext,
    deadlines: &Arc<Deadlines>,
    peer: Option<IpAddr>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> + Send + use<'a> {
    let guard = deadlines.begin_request();
    let (head, incoming) = request.into_parts();
    let poll = DirectPoll::from_request(&context.broker, peer, &head).filter(|_| incoming.is_end_stream());
    let response = match poll {
        Some(poll) => Either::Left(poll.respond().map(Ok)),
        None => Either::Right(context.router.clone().call(into_request(context, peer, head, incoming))),
    };
    async move { Ok(response.await?.map(|body| ResponseBody::new(body, guard))) }
}

fn into_request(context: &ServerContext, peer: Option<IpAddr>, mut head: Parts, incoming: Incoming) -> Request<Body> {
    head.extensions.insert(PeerAddress(peer));
    let body = if incoming.is_end_stream() {
        Body::empty()
    } else {
        let flag = BodyTimeoutFlag::default();
        head.extensions.insert(flag.clone());
        Body::new(TimedBody::new(incoming, Instant::now() + context.limits.body_time_max, flag))
    };
    Request::from_parts(head, body)
}
