//! HTTPS server on a free port of the loopback interface, with a self-signed certificate.

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
use crate::runtime::InterruptibleRuntime;

/// Timeout of binding the port.
const LISTEN_MAX: Duration = Duration::from_secs(5);
/// Timeout of a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a review: it has two objects of at most three megabytes.
const REVIEW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Pause after an error of `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A running server. It responds during waits of the program. Dropping it closes its connections.
pub(super) struct WebhookServer {
    _tasks: JoinSet<Infallible>,
    /// Port.
    pub(super) port: u16,
    /// Self-signed certificate, as PEM.
    pub(super) certificate_pem: String,
}

impl WebhookServer {
    /// Starts the server.
    pub(super) fn start(runtime: &InterruptibleRuntime, rewrites: Vec<Rewrite>) -> Result<Self, String> {
        let made = rcgen::generate_simple_self_signed([Ipv4Addr::LOCALHOST.to_string()]).map_err(to_message)?;
        let certificate_pem = made.cert.pem();
        let tls = TlsAcceptor::from(tls_config(&made)?);
        let listener = runtime.block_on(LISTEN_MAX, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).map_err(to_message)?;
        let listener = listener.map_err(to_message)?;
        let port = listener.local_addr().map_err(to_message)?.port();
        let _tasks = runtime.spawn(serve(listener, tls, rewrites.into()));
        Ok(Self { _tasks, port, certificate_pem })
    }
}

fn tls_config(made: &CertifiedKey<rcgen::KeyPair>) -> Result<Arc<ServerConfig>, String> {
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(to_message)?;
    let mut config =
        versions.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).map_err(to_message)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Accepts connections. They belong to this future: dropping it closes them.
async fn serve(listener: TcpListener, tls: TlsAcceptor, rewrites: Arc<[Rewrite]>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased; // finished connections first, so that they do not accumulate
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, tls.clone(), rewrites.clone()))),
                // The API server retries, and reports an error to its client.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, rewrites: Arc<[Rewrite]>) {
    // A failed or slow handshake closes the connection.
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await else { return };
    let service = service_fn(move |request| handle(request, rewrites.clone()));
    // The API server reports a broken connection to its client.
    let _broken = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle(request: Request<Incoming>, rewrites: Arc<[Rewrite]>) -> Result<Response<Full<Bytes>>, Infallible> {
    let read = Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect().await;
    let reviewed = match read {
        Ok(body) => review::respond(&body.to_bytes(), &rewrites).map_err(to_message),
        Err(error) => Err(to_message(error)),
    };
    let (status, content_type, body) = match reviewed {
        Ok(review) => (StatusCode::OK, JSON, review.to_string()),
        Err(reason) => (StatusCode::BAD_REQUEST, TEXT, reason),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

fn to_message(error: impl std::fmt::Display) -> String {
    error.to_string()
}
