//! Tests of delivery attempts against receivers on real sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::connect::{GuardedConnector, Resolve, Trust};
use super::headers::ExtraHeaders;
use super::send::{Attempt, Sender, WebhookMessage, parse_timeout};
use super::signature::Secret;
use super::system::{TcpDialer, system_connector};
use super::target::{Target, TargetPolicy};

const LENIENT: TargetPolicy = TargetPolicy { allow_http: true, allow_private: true };
const PUBLIC_ONLY: TargetPolicy = TargetPolicy { allow_http: true, allow_private: false };
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = r#"{"type":"deployment.failed"}"#;
/// Parts of the URL and of its headers that no error may contain.
const HIDDEN: [&str; 4] = ["hooks.test", "path-token", "query-token", "header-token"];
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);

/// Resolver that returns these addresses for every name.
#[derive(Clone)]
struct Names(Vec<SocketAddr>);

impl Resolve for Names {
    async fn resolve(&self, _: String, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.clone())
    }
}

/// Resolver that fails for every name.
#[derive(Clone)]
struct NoNames;

impl Resolve for NoNames {
    async fn resolve(&self, host: String, _: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other(format!("{host} is unknown")))
    }
}

fn no_trust() -> Trust {
    Arc::new(|| None)
}

fn sender(addresses: Vec<SocketAddr>, trust: Trust, policy: TargetPolicy) -> Sender {
    Sender::new(GuardedConnector::new(Names(addresses), TcpDialer, trust, policy))
}

/// Makes one attempt with secrets in every part of the URL.
async fn attempt(sender: &Sender, base: &str, timeout: Duration) -> Attempt {
    let target = Target::parse(&format!("{base}/path-token?key=query-token"), LENIENT).unwrap();
    let headers = BTreeMap::from([("authorization".to_owned(), "Bearer header-token".to_owned())]);
    let message = WebhookMessage {
        id: "message-1",
        sent_at: Timestamp::from_second(1_700_000_000).unwrap(),
        target: &target,
        headers: &ExtraHeaders::parse(&headers).unwrap(),
        secret: &Secret::parse(SECRET).unwrap(),
        body: Bytes::from_static(BODY.as_bytes()),
        timeout,
    };
    let attempt = sender.send(&message).await;
    let shown = format!("{attempt:?} {message:?}");
    assert!(HIDDEN.iter().all(|hidden| !shown.contains(hidden)), "{shown}");
    attempt
}

/// Reads one request completely.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).ends_with(BODY) {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).await.unwrap();
        assert_ne!(count, 0, "the sender closed the connection early");
        read.extend_from_slice(&part[..count]);
    }
    String::from_utf8(read).unwrap()
}

/// Reads one request, responds and closes.
async fn respond(mut stream: impl AsyncRead + AsyncWrite + Unpin, response: &str) -> String {
    let request = read_request(&mut stream).await;
    stream.write_all(response.as_bytes()).await.unwrap();
    // The sender may have closed the connection already.
    let _gone = stream.shutdown().await;
    request
}

/// Returns the result of an attempt with this response, and the request that the receiver got.
async fn exchange(text: &str, base: &str, timeout: Duration) -> (Attempt, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(vec![listener.local_addr().unwrap()], no_trust(), LENIENT);
    let receiving = async { respond(listener.accept().await.unwrap().0, text).await };
    tokio::join!(attempt(&sender, base, timeout), receiving)
}

async fn outcome(text: &str) -> (Option<u16>, Option<String>) {
    let (attempt, _) = exchange(text, "http://hooks.test", LONG).await;
    (attempt.status, attempt.error)
}

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let lines = request.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| *known == name).map(|(_, value)| value).next().unwrap_or_default()
}

#[tokio::test]
async fn a_receiver_gets_one_signed_message_that_it_can_verify() {
    let (attempt, request) = exchange("HTTP/1.1 204 No Content\r\n\r\n", "http://hooks.test:8080", LONG).await;
    assert_eq!((attempt.status, attempt.error), (Some(204), None));
    assert!(request.starts_with("POST /path-token?key=query-token HTTP/1.1\r\n"), "{request}");
    assert_eq!(header(&request, "host"), "hooks.test:8080");
    assert_eq!(header(&request, "content-type"), "application/json");
    assert_eq!(header(&request, "authorization"), "Bearer header-token");
    // Verified as a receiver does it.
    let body = request.split("\r\n\r\n").nth(1).unwrap();
    let signed = format!("{}.{}.{body}", header(&request, "webhook-id"), header(&request, "webhook-timestamp"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &receiver_key());
    let (version, signature) = header(&request, "webhook-signature").split_once(',').unwrap();
    ring::hmac::verify(&key, signed.as_bytes(), &decode(signature)).unwrap();
    assert_eq!((version, signed.as_str()), ("v1", r#"message-1.1700000000.{"type":"deployment.failed"}"#));
}

fn receiver_key() -> Vec<u8> {
    decode(SECRET.trim_start_matches("whsec_"))
}

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn only_2xx_is_success() {
    let ok = outcome("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    assert_eq!(ok, (Some(200), None));
    let failed = outcome("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 12\r\n\r\nheader-token").await;
    assert_eq!(failed, (Some(500), Some("the receiver responded with status 500".to_owned())));
    let gone = outcome("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(gone, (Some(410), Some("the receiver responded with status 410".to_owned())));
}

#[tokio::test]
async fn a_redirect_is_an_error_and_not_followed() {
    // The redirect leads to a listener that must get no connection.
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = trap.local_addr().unwrap();
    let text = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{location}/\r\ncontent-length: 0\r\n\r\n");
    let message = "the receiver responded with status 307, a redirect, and redirects are not followed";
    assert_eq!(outcome(&text).await, (Some(307), Some(message.to_owned())));
    let accepted = tokio::time::timeout(SHORT, trap.accept()).await;
    assert!(accepted.is_err(), "the redirect was followed");
}

#[tokio::test]
async fn the_status_decides_even_if_the_body_never_ends() {
    let endless = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n{}", "x".repeat(10_000));
    assert_eq!(outcome(&endless).await, (Some(200), None));
}

#[tokio::test]
async fn at_most_the_limit_is_read_of_a_response() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(vec![listener.local_addr().unwrap()], no_trust(), LENIENT);
    let receiving = async {
        let mut stream = listener.accept().await.unwrap().0;
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // Writes until the sender closes the connection; without the limit this would not end.
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
    };
    let (attempt, ()) = tokio::join!(attempt(&sender, "http://hooks.test", LONG), receiving);
    assert_eq!((attempt.status, attempt.error), (Some(200), None));
}

#[tokio::test]
async fn a_receiver_that_does_not_respond_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(vec![listener.local_addr().unwrap()], no_trust(), LENIENT);
    let silent = async {
        let mut stream = listener.accept().await.unwrap().0;
        read_request(&mut stream).await;
        // Until the sender closes the connection.
        stream.read(&mut [0; 16]).await
    };
    let (attempt, closed) = tokio::join!(attempt(&sender, "http://hooks.test", SHORT), silent);
    assert_eq!((attempt.status, attempt.error.as_deref()), (None, Some("no response within 50ms")));
    assert!(attempt.duration >= SHORT);
    assert!(matches!(closed, Ok(0) | Err(_)), "the connection outlived its attempt");
}

#[tokio::test]
async fn a_closed_connection_is_an_error() {
    let broken = outcome("").await;
    assert_eq!(broken, (None, Some("the connection was closed before a response".to_owned())));
    let not_http = outcome("SSH-2.0-OpenSSH_9.2\r\n").await;
    assert_eq!(not_http, (None, Some("the connection was closed before a response".to_owned())));
}

#[tokio::test]
async fn a_name_with_a_private_address_is_rejected_before_connecting() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let loopback = listener.local_addr().unwrap();
    let public: SocketAddr = "8.8.8.8:80".parse().unwrap();
    for addresses in [vec![loopback], vec![public, loopback], vec![public, "10.1.2.3:80".parse().unwrap()]] {
        let class = if addresses.contains(&loopback) { "loopback" } else { "private" };
        let attempt = attempt(&sender(addresses, no_trust(), PUBLIC_ONLY), "http://hooks.test", LONG).await;
        let message = format!("the URL resolves to a {class} address, which is not allowed");
        assert_eq!((attempt.status, attempt.error), (None, Some(message)));
    }
    assert!(tokio::time::timeout(SHORT, listener.accept()).await.is_err(), "something connected");
}

#[tokio::test]
async fn the_system_connector_rejects_loopback_unless_it_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let guarded = Sender::new(system_connector(PUBLIC_ONLY));
    for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"] {
        let attempt = attempt(&guarded, &format!("http://{host}:{port}"), LONG).await;
        let message = "the URL resolves to a loopback address, which is not allowed";
        assert_eq!(attempt.error.as_deref(), Some(message), "{host}");
    }
    let free = Sender::new(system_connector(LENIENT));
    let receiving = async { respond(listener.accept().await.unwrap().0, "HTTP/1.1 200 OK\r\n\r\n").await };
    let base = format!("http://127.0.0.1:{port}");
    let (attempt, _) = tokio::join!(attempt(&free, &base, LONG), receiving);
    assert_eq!((attempt.status, attempt.error), (Some(200), None));
}

#[tokio::test]
async fn the_error_of_an_unreachable_receiver_has_no_address() {
    let unknown = Sender::new(GuardedConnector::new(NoNames, TcpDialer, no_trust(), LENIENT));
    let unresolved = attempt(&unknown, "http://hooks.test", LONG).await;
    assert_eq!(unresolved.error.as_deref(), Some("the host name cannot be resolved"));
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = attempt(&sender(vec![closed], no_trust(), LENIENT), "http://hooks.test", LONG).await;
    assert_eq!(refused.error.as_deref(), Some("no connection: connection refused"));
    let nowhere = attempt(&sender(Vec::new(), no_trust(), LENIENT), "http://hooks.test", LONG).await;
    assert_eq!(nowhere.error.as_deref(), Some("the host name cannot be resolved"));
}

#[tokio::test]
async fn the_next_address_of_a_name_is_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let sender = sender(vec![closed, listener.local_addr().unwrap()], no_trust(), LENIENT);
    let receiving = async { respond(listener.accept().await.unwrap().0, "HTTP/1.1 200 OK\r\n\r\n").await };
    let (attempt, _) = tokio::join!(attempt(&sender, "http://hooks.test", LONG), receiving);
    assert_eq!(attempt.error, None);
}

/// Returns a TLS acceptor with a certificate for one name, and a client configuration that trusts it.
fn certified(name: &str) -> (TlsAcceptor, Trust) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let versions = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let server = versions.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = Arc::new(versions.with_root_certificates(roots).with_no_client_auth());
    (TlsAcceptor::from(Arc::new(server)), Arc::new(move || Some(client.clone())))
}

/// Makes an attempt at `https://hooks.test`, whose receiver has a certificate for `name`.
async fn tls_attempt(name: &str, trust: Option<Trust>) -> Attempt {
    let (acceptor, trusting) = certified(name);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(vec![listener.local_addr().unwrap()], trust.unwrap_or(trusting), LENIENT);
    let receiving = async {
        let stream = listener.accept().await.unwrap().0;
        if let Ok(stream) = acceptor.accept(stream).await {
            respond(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    };
    tokio::join!(attempt(&sender, "https://hooks.test", LONG), receiving).0
}

#[tokio::test]
async fn a_tls_receiver_must_have_a_trusted_certificate_for_the_host() {
    let trusted = tls_attempt("hooks.test", None).await;
    assert_eq!((trusted.status, trusted.error), (Some(200), None));
    let other = tls_attempt("other.test", None).await;
    let message = "no TLS connection: the certificate is for another host";
    assert_eq!((other.status, other.error.as_deref()), (None, Some(message)));
    let (_, other_trust) = certified("hooks.test");
    let unknown = tls_attempt("hooks.test", Some(other_trust)).await;
    let error = unknown.error.unwrap();
    assert!(error.starts_with("no TLS connection: the certificate "), "{error}");
    let none = tls_attempt("hooks.test", Some(no_trust())).await;
    let message = "this machine has no certificate authorities, so no certificate can be verified";
    assert_eq!(none.error.as_deref(), Some(message));
}

#[tokio::test]
async fn an_https_url_is_never_requested_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sender = sender(vec![listener.local_addr().unwrap()], certified("hooks.test").1, LENIENT);
    let receiving = async {
        let mut first = [0; 1];
        let mut stream = listener.accept().await.unwrap().0;
        stream.read_exact(&mut first).await.unwrap();
        first[0]
    };
    let (attempt, first) = tokio::join!(attempt(&sender, "https://hooks.test", LONG), receiving);
    const HANDSHAKE_RECORD: u8 = 22;
    assert_eq!(first, HANDSHAKE_RECORD);
    assert_eq!(attempt.error.as_deref(), Some("no TLS connection: the connection was closed during the handshake"));
}

#[test]
fn a_timeout_has_1_to_60_seconds() {
    assert_eq!(parse_timeout(1), Ok(Duration::from_secs(1)));
    assert_eq!(parse_timeout(60), Ok(Duration::from_secs(60)));
    assert_eq!(parse_timeout(0).unwrap_err().to_string(), "a timeout has 1 to 60 seconds, not 0");
    assert!(parse_timeout(61).is_err());
    assert!(parse_timeout(30).is_ok());
}
