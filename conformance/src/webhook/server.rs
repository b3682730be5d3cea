//! HTTPS on a free port of the loopback interface, with a certificate of its own, for the API servers of this machine.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use super::review;
use crate::rewrite::Rewrite;
use crate::waiter::Waiter;

/// How long it may take to listen.
const LISTEN_MAX: Duration = Duration::from_secs(5);
/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// An object has at most three megabytes on the wire; a review has two of them.
const REVIEW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long to wait when the system gives no connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A server that answers reviews whenever somebody waits. Dropping it ends it, with its connections.
pub(super) struct Server {
    _tasks: JoinSet<Infallible>,
    /// Its port.
    pub(super) port: u16,
    /// What it shows, which is its own authority, as PEM.
    pub(super) certificate_pem: String,
}

impl Server {
    /// Listens, and answers from now on.
    pub(super) fn start(waiter: &Waiter, rewrites: Vec<Rewrite>) -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed([Ipv4Addr::LOCALHOST.to_string()]).map_err(words)?;
        let certificate_pem = made.cert.pem();
        let tls = TlsAcceptor::from(encryption(&made)?);
        let listener = waiter.wait(LISTEN_MAX, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).map_err(words)?;
        let listener = listener.map_err(words)?;
        let port = listener.local_addr().map_err(words)?.port();
        let _tasks = waiter.besides(serve(listener, tls, rewrites.into()));
        Ok(Self { _tasks, port, certificate_pem })
    }
}

fn encryption(made: &CertifiedKey<rcgen::KeyPair>) -> Result<Arc<ServerConfig>, String> {
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(words)?;
    let mut config =
        versions.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).map_err(words)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Connections belong to this future: dropping it ends them.
async fn serve(listener: TcpListener, tls: TlsAcceptor, rewrites: Arc<[Rewrite]>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased; // what ended first, so that it is not kept
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, tls.clone(), rewrites.clone()))),
                // The API server asks again, and says so if nobody answers.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, rewrites: Arc<[Rewrite]>) {
    // Who cannot agree on a key, or takes too long, is not served.
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await else { return };
    let service = service_fn(move |request| respond(request, rewrites.clone()));
    // A connection that breaks is the API server's business; it tells whoever wrote.
    let _broken = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: Request<Incoming>, rewrites: Arc<[Rewrite]>) -> Result<Response<Full<Bytes>>, Infallible> {
    let read = Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect().await;
    let answered = match read {
        Ok(body) => review::answer(&body.to_bytes(), &rewrites).map_err(words),
        Err(error) => Err(words(error)),
    };
    let (status, kind, body) = match answered {
        Ok(answer) => (StatusCode::OK, JSON, answer.to_string()),
        Err(reason) => (StatusCode::BAD_REQUEST, TEXT, reason),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
