//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::future::ready;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures_util::future::Either;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use super::body::{AnswerBody, TimedBody};
use super::limits::Limits;
use super::pace::{Pace, Paced, Slow};
use crate::api::http::connection_info::{BodyTimeoutFlag, PeerAddress};
use crate::api::{Remembered, from_memory};
use crate::broker::Broker;
use crate::metrics::{CutOff, Metrics};

/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The largest buffer on either way; larger bodies pass through it in parts.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// The parts of a server that every connection needs.
pub(super) struct ServerContext {
    pub broker: Broker,
    pub router: Router,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
}

/// Serves a connection as it is.
pub(super) async fn serve_plain<S>(
    stream: S,
    peer: Option<IpAddr>,
    context: Arc<ServerContext>,
    stopped: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = context.metrics.connection();
    speak(stream, peer, &context, stopped).await;
}

/// Serves a connection that begins with a handshake.
pub(super) async fn serve_encrypted<S>(
    stream: S,
    tls: TlsAcceptor,
    peer: Option<IpAddr>,
    context: Arc<ServerContext>,
    mut stopped: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _open = context.metrics.connection();
    let handshake = timeout(context.limits.handshake_time_max, tls.accept(stream));
    let shaken = tokio::select! {
        biased; // The end first: nothing has been asked yet.
        _ = stopped.changed() => return,
        shaken = handshake => shaken,
    };
    match shaken {
        Ok(Ok(stream)) => speak(stream, peer, &context, stopped).await,
        Ok(Err(_)) | Err(_) => context.metrics.connection_cut_off(CutOff::Handshake),
    }
}

/// Speaks HTTP until either side has had enough.
async fn speak<S>(stream: S, peer: Option<IpAddr>, context: &ServerContext, mut stopped: watch::Receiver<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pace = Pace::new(context.limits);
    let service = service_fn(|request| answer(context, &pace, peer, request));
    let stream = TokioIo::new(Paced::new(stream, pace.clone()));
    let mut protocol = http1::Builder::new();
    // The pace knows a slow head from an idle connection, which the protocol's own timer does not.
    protocol.header_read_timeout(None).max_buf_size(BUFFER_BYTES_MAX).max_header_size(HEAD_BYTES_MAX);
    let mut conversation = pin!(protocol.serve_connection(stream, service));
    let mut exceeded = pin!(pace.exceeded());
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased; // The end first, so that no further request begins. The pace after the bytes that it judges.
            _ = stopped.changed(), if !is_stopping => {
                is_stopping = true;
                conversation.as_mut().graceful_shutdown();
            }
            // A peer that goes away or speaks no HTTP is its own affair; refusals are answers.
            _ended = conversation.as_mut() => return,
            slow = &mut exceeded => return cut(slow, &context.metrics),
        }
    }
}

fn cut(slow: Slow, metrics: &Metrics) {
    match slow {
        Slow::Head => metrics.connection_cut_off(CutOff::SlowHead),
        Slow::Answer => metrics.connection_cut_off(CutOff::SlowAnswer),
        // Nobody did anything wrong.
        Slow::Idle => {}
    }
}

fn answer(
    context: &ServerContext,
    pace: &Arc<Pace>,
    peer: Option<IpAddr>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<AnswerBody>, Infallible>> + Send + use<> {
    let busy = pace.begin();
    let (head, incoming) = request.into_parts();
    let finish = move |response: Response<Body>| Ok(response.map(|body| AnswerBody::new(body, busy)));
    match from_memory(&context.broker, &head) {
        Remembered::Answer(response) => Either::Left(ready(finish(response))),
        Remembered::Nothing => {
            let answering = context.router.clone().call(whole_request(context, peer, head, incoming));
            Either::Right(Either::Left(async move { finish(answering.await?) }))
        }
        Remembered::Waits(poll) => {
            // The router is only taken along: what waits must be small.
            let mut router = context.router.clone();
            Either::Right(Either::Right(async move {
                match poll.wait().await {
                    Ok(response) => finish(response),
                    Err(again) => finish(router.call(again).await?),
                }
            }))
        }
    }
}

fn whole_request(context: &ServerContext, peer: Option<IpAddr>, mut head: Parts, incoming: Incoming) -> Request<Body> {
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
