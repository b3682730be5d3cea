//! HTTPS server of webhooks, for API servers that share the loopback interface with this program.

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
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Timeout of a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a review: it has two objects of at most three megabytes.
const REVIEW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Pause after an error of `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Returns the reply to a review, by the path of its request and its body.
pub type RespondToReview = Arc<dyn Fn(&str, &[u8]) -> ReviewReply + Send + Sync>;

/// Reply of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewReply {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub content_type: &'static str,
    /// Body.
    pub body: String,
    /// Time before the reply.
    pub delay: Duration,
}

/// A server that could not start.
#[derive(Debug, Error)]
#[error("the webhooks could not start: {0}")]
pub struct WebhookServerError(String);

/// Address of webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAddress {
    /// Host and port.
    pub authority: String,
    /// Certificate authority, in PEM.
    pub certificate: String,
}

/// A running server on a free port, with a self-signed certificate. Dropping it closes its connections.
pub struct WebhookServer {
    _tasks: JoinSet<Infallible>,
    /// Its address.
    pub address: WebhookAddress,
}

impl WebhookServer {
    /// Starts the server in the current runtime.
    pub async fn start(respond: RespondToReview) -> Result<Self, WebhookServerError> {
        let host = Ipv4Addr::LOCALHOST;
        let made = rcgen::generate_simple_self_signed([host.to_string()]).map_err(to_error)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(to_error)?;
        let config = versions.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
        let tls = TlsAcceptor::from(Arc::new(config.map_err(to_error)?));
        let listener = TcpListener::bind((host, 0)).await.map_err(to_error)?;
        let authority = listener.local_addr().map_err(to_error)?.to_string();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, tls, respond));
        Ok(Self { _tasks: tasks, address: WebhookAddress { authority, certificate: made.cert.pem() } })
    }
}

fn to_error(error: impl std::fmt::Display) -> WebhookServerError {
    WebhookServerError(error.to_string())
}

/// Accepts connections. They belong to this future: dropping it closes them.
async fn serve(listener: TcpListener, tls: TlsAcceptor, respond: RespondToReview) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased; // finished connections first, so that they do not accumulate
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, tls.clone(), respond.clone()))),
                // The API server retries, and reports an error to its client.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, respond: RespondToReview) {
    // A failed or slow handshake closes the connection.
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await else { return };
    let service = service_fn(move |request| handle(request, respond.clone()));
    // The API server reports a broken connection to its client.
    let _broken = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn handle(request: Request<Incoming>, respond: RespondToReview) -> Result<Response<Full<Bytes>>, BoxError> {
    let path = request.uri().path().to_owned();
    let body = Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect().await?.to_bytes();
    let reply = respond(&path, &body);
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = StatusCode::from_u16(reply.status)?;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    Ok(response)
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
