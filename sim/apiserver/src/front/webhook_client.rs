//! HTTP client of webhooks over any connector: a connection per call, encrypted or, in a simulated network, plain.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError};
use tower_service::Service;

use super::webhook_trust::{BundleVerifier, describe_certificate_error};
use super::webhooks::{WebhookCaller, WebhookFuture};
use crate::http::webhook_call::{WebhookAnswer, WebhookCall, WebhookReply};

/// Largest reply in bytes.
const REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// User agent of the real server.
const AGENT: &str = "kube-apiserver-admission";

/// Calls webhooks over HTTP.
pub struct WebhookClient<C> {
    connector: C,
    is_encrypted: bool,
}

impl<C> WebhookClient<C> {
    /// Creates a client that connects to the resolved addresses with TLS.
    pub fn encrypted(connector: C) -> Self {
        Self { connector, is_encrypted: true }
    }

    /// Creates a client without TLS that connects by name: that of the URL, or `NAME.NAMESPACE.svc` for a Service. For simulated
    /// networks, whose hosts have names and no certificates.
    pub fn plain(connector: C) -> Self {
        Self { connector, is_encrypted: false }
    }
}

impl<C> WebhookCaller for WebhookClient<C>
where
    C: Service<Uri> + Clone + Send + Sync,
    C::Response: Read + Write + Unpin + Send + 'static,
    C::Error: std::error::Error + 'static,
    C::Future: Send,
{
    fn call<'a>(&'a self, call: &'a WebhookCall) -> WebhookFuture<'a> {
        Box::pin(self.send(call))
    }
}

impl<C> WebhookClient<C>
where
    C: Service<Uri> + Clone + Send + Sync,
    C::Response: Read + Write + Unpin + Send + 'static,
    C::Error: std::error::Error + 'static,
    C::Future: Send,
{
    async fn send(&self, call: &WebhookCall) -> WebhookAnswer {
        let host = if self.is_encrypted { &call.host } else { &call.server_name };
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let address: Uri = format!("http://{bracketed}:{}", call.port).parse().map_err(|_| no_such_host(host))?;
        let stream = self.connector.clone().call(address).await;
        let stream = stream.map_err(|error| describe_connection_error(&bracketed, call.port, &error))?;
        if !self.is_encrypted {
            return exchange(stream, call).await;
        }
        let name = ServerName::try_from(call.server_name.clone()).map_err(|_| no_such_host(&call.server_name))?;
        let config = tls_config(&call.ca_bundle)?;
        let stream = TlsConnector::from(config).connect(name, TokioIo::new(stream)).await;
        exchange(TokioIo::new(stream.map_err(|error| describe_tls_error(&error))?), call).await
    }
}

/// Sends a call over a connection, and reads the reply.
async fn exchange<S: Read + Write + Unpin + Send + 'static>(stream: S, call: &WebhookCall) -> WebhookAnswer {
    let broken = |error: hyper::Error| if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() };
    let url: Uri = call.url.parse().map_err(|_| "invalid URL".to_owned())?;
    let request = http::Request::builder()
        .method(Method::POST)
        .uri(url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str))
        .header(HOST, url.authority().map_or("", http::uri::Authority::as_str))
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .body(Full::new(call.body.clone()))
        .map_err(|error| error.to_string())?;
    let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let body = Limited::new(body, REPLY_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        let content_type = content_type.unwrap_or_default().to_owned();
        Ok(WebhookReply { status: parts.status.as_u16(), content_type, body: body.to_bytes() })
    };
    let mut exchange = std::pin::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased; // A complete reply counts, even if the connection has ended.
        reply = &mut exchange => reply,
        _ended = &mut connection => exchange.await,
    }
}

/// Returns a configuration that trusts the certificates of a bundle, or the authorities of the system if it is empty.
fn tls_config(ca_bundle: &Bytes) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let mut config = if ca_bundle.is_empty() {
        use rustls_platform_verifier::BuilderVerifierExt;
        builder.with_platform_verifier().map_err(|error| error.to_string())?.with_no_client_auth()
    } else {
        let verifier = BundleVerifier::new(ca_bundle, provider).map_err(|error| describe_rejection(&error))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn no_such_host(host: &str) -> String {
    format!("dial tcp: lookup {host}: no such host")
}

/// Returns the error of a connection in the words of Go.
fn describe_connection_error(host: &str, port: u16, error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            let reason = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                std::io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
                std::io::ErrorKind::NotFound => return no_such_host(host),
                _ => error.to_string(),
            };
            return format!("dial tcp {host}:{port}: {reason}");
        }
        cause = error.source();
    }
    format!("dial tcp {host}:{port}: {error}")
}

/// Returns the error of a TLS handshake in the words of Go.
fn describe_tls_error(error: &std::io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(rejected @ TlsError::InvalidCertificate(_)) => describe_rejection(rejected),
        _ => format!("remote error: tls: {error}"),
    }
}

fn describe_rejection(error: &TlsError) -> String {
    let reason = match error {
        TlsError::InvalidCertificate(problem) => describe_certificate_error(problem),
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {reason}")
}
