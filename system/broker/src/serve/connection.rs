//! One connection, from the header of its proxy and the TLS handshake to its last response.

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
use super::peers::PeerConnections;
use super::proxy_protocol::read_client_address;
use super::room::Place;
use crate::api::DirectPoll;
use crate::api::http::connection_info::{BodyTimeoutFlag, CloseConnection, KeyAcceptedFlag, PeerAddress};
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
    pub peers: PeerConnections,
    pub has_proxy_headers: bool,
}

/// A peer of a connection, and what the server knows about it.
struct Client {
    address: Option<IpAddr>,
    key_accepted: KeyAcceptedFlag,
    close: CloseConnection,
}

/// Serves a connection until it ends or has to make room for another one.
pub(super) async fn serve_in_place<S>(
    stream: S,
    peer: Option<IpAddr>,
    tls: Option<TlsAcceptor>,
    context: Arc<ServerContext>,
    shutdown: CancellationToken,
    place: Place,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let flags = (place.key_accepted.clone(), CloseConnection(place.close.clone()));
    tokio::select! {
        biased; // The order does not matter: the connection ends in both cases.
        () = place.close.cancelled() => context.metrics.record_closed_connection(CloseReason::NoRoom),
        () = serve_connection(stream, peer, tls, &context, shutdown, flags) => {}
    }
}

/// Serves a connection of a client, or of a proxy that names its client.
async fn serve_connection<S>(
    mut stream: S,
    peer: Option<IpAddr>,
    tls: Option<TlsAcceptor>,
    context: &ServerContext,
    shutdown: CancellationToken,
    (key_accepted, close): (KeyAcceptedFlag, CloseConnection),
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let is_proxy = peer.is_some_and(|peer| context.broker.trusted_proxies.contains(peer));
    let client = if is_proxy && context.has_proxy_headers {
        let header = timeout(context.limits.handshake_time_max, read_client_address(&mut stream));
        let header = tokio::select! {
            biased; // Shutdown first: there is no request yet.
            () = shutdown.cancelled() => return,
            header = header => header,
        };
        match header {
            Ok(Ok(client)) => client.map(|client| client.to_canonical()),
            Ok(Err(error)) => return record_invalid_header(&context.metrics, peer, &error.to_string()),
            Err(_) => return record_invalid_header(&context.metrics, peer, "no PROXY protocol header arrived in time"),
        }
    } else {
        None
    };
    // The connections of a proxy are those of many clients.
    let counted = client.or(peer.filter(|_| !is_proxy));
    let place_of_peer = context.peers.enter(counted, context.limits.connections_per_peer_max, key_accepted.clone());
    let _open = context.metrics.open_connection();
    let client = Client { address: client.or(peer), key_accepted, close };
    let make_room = place_of_peer.close();
    let served = async {
        match tls {
            None => serve_http(stream, client, context, shutdown).await,
            // Boxed: a connection without TLS would have room for one with TLS, and thousands wait.
            Some(tls) => Box::pin(serve_encrypted(stream, tls, client, context, shutdown)).await,
        }
    };
    tokio::select! {
        biased; // The order does not matter: the connection ends in both cases.
        () = make_room.cancelled() => context.metrics.record_closed_connection(CloseReason::ManyOfPeer),
        () = served => {}
    }
}

fn record_invalid_header(metrics: &Metrics, proxy: Option<IpAddr>, problem: &str) {
    metrics.record_closed_connection(CloseReason::ProxyHeader);
    let proxy = proxy.map(tracing::field::display);
    tracing::debug!(proxy, "a connection of a trusted proxy was closed: {problem}");
}

/// Serves a connection with TLS.
async fn serve_encrypted<S>(
    stream: S,
    tls: TlsAcceptor,
    client: Client,
    context: &ServerContext,
    shutdown: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = timeout(context.limits.handshake_time_max, tls.accept(stream));
    let stream = tokio::select! {
        biased; // Shutdown first: there is no request yet.
        () = shutdown.cancelled() => return,
        stream = handshake => stream,
    };
    match stream {
        Ok(Ok(stream)) => serve_http(stream, client, context, shutdown).await,
        Ok(Err(_)) | Err(_) => context.metrics.record_closed_connection(CloseReason::Handshake),
    }
}

/// Serves HTTP until either side closes the connection.
async fn serve_http<S>(stream: S, client: Client, context: &ServerContext, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let deadlines = Deadlines::new(context.limits);
    let service = service_fn(|request| respond(context, &deadlines, &client, request));
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
    client: &Client,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> + Send + use<'a> {
    let guard = deadlines.begin_request();
    let (head, incoming) = request.into_parts();
    let poll = DirectPoll::from_request(&context.broker, client.address, &head).filter(|_| incoming.is_end_stream());
    let response = match poll {
        Some(poll) => {
            client.key_accepted.set();
            Either::Left(poll.respond().map(Ok))
        }
        None => Either::Right(context.router.clone().call(into_request(context, client, head, incoming))),
    };
    // No async block, which would have room for the future twice.
    response.map(|response| response.map(|response| response.map(|body| ResponseBody::new(body, guard))))
}

fn into_request(context: &ServerContext, client: &Client, mut head: Parts, incoming: Incoming) -> Request<Body> {
    head.extensions.insert(PeerAddress(client.address));
    head.extensions.insert(client.key_accepted.clone());
    head.extensions.insert(client.close.clone());
    let body = if incoming.is_end_stream() {
        Body::empty()
    } else {
        let flag = BodyTimeoutFlag::default();
        head.extensions.insert(flag.clone());
        Body::new(TimedBody::new(incoming, Instant::now() + context.limits.body_time_max, flag))
    };
    Request::from_parts(head, body)
}
