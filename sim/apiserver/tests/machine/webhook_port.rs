//! Webhooks over real sockets with TLS, called by a server on a port.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};
use serde_json::{Value, json};
use sindri_apiserver::{ApiServer, OpenGate, Port, SharedServer, WebhookClient, serve_port};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Replies by path: adds a label, denies, or takes too long.
async fn review(request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("a review");
    let mut response = json!({"uid": review["request"]["uid"], "allowed": path != "/deny"});
    if path == "/label" {
        let operations = json!([{"op": "add", "path": "/metadata/labels", "value": {"reviewed": "yes"}}]);
        response["patch"] = json!(STANDARD.encode(operations.to_string()));
        response["patchType"] = json!("JSONPatch");
    }
    if path == "/slow" {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(http::Response::new(Full::new(review.to_string().into())))
}

/// Starts webhooks with a certificate for these names, which is its own authority. Returns the port and the certificate in PEM.
async fn start_webhooks(tasks: &mut JoinSet<()>, names: &[&str]) -> (u16, String) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    (start_webhooks_with(tasks, &made.cert, &made.signing_key).await, made.cert.pem())
}

/// Starts webhooks with a certificate. Returns the port.
async fn start_webhooks_with(tasks: &mut JoinSet<()>, certificate: &Certificate, key: &KeyPair) -> u16 {
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a key for the certificate");
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let tls = tls.clone();
            connections.spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let _closed = server::Builder::new().serve_connection(TokioIo::new(stream), service_fn(review)).await;
            });
        }
    });
    port
}

/// Starts an API server without TLS. Returns its address.
async fn start_server(tasks: &mut JoinSet<()>) -> std::net::SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a valid time");
    let server = SharedServer::new(ApiServer::new(1, now));
    let webhooks = Arc::new(WebhookClient::encrypted(HttpConnector::new()));
    let port = Port { webhooks: Some(webhooks), ..Port::default() };
    tasks.spawn(serve_port(listener, server, Arc::new(move || now), Arc::new(OpenGate), port, std::future::pending()));
    address
}

async fn post(address: std::net::SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.expect("HTTP");
    let request = http::Request::post(path)
        .header("host", "sim")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let exchange = async {
        let response = sender.send_request(request).await.expect("a response");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&body).expect("JSON"))
    };
    tokio::select! {
        biased; // The response counts.
        response = exchange => response,
        _ = connection => panic!("the connection ended"),
    }
}

#[test]
fn webhooks_are_called_over_tls_with_their_certificate_authority() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let (port, certificate) = start_webhooks(&mut tasks, &["127.0.0.1"]).await;
        let (service_port, service_certificate) = start_webhooks(&mut tasks, &["hooks.default.svc"]).await;
        let address = start_server(&mut tasks).await;
        let url = |path: &str| json!({"url": format!("https://127.0.0.1:{port}/{path}")});
        let service = json!({"service": {"name": "hooks", "namespace": "default", "port": service_port, "path": "/deny"}});
        let cases = [
            ("label", "mutating", url("label"), &certificate),
            ("deny", "validating", url("deny"), &certificate),
            ("slow", "validating", url("slow"), &certificate),
            ("untrusted", "validating", url("deny"), &service_certificate),
            ("service", "validating", service, &service_certificate),
            ("closed", "validating", json!({"url": "https://127.0.0.1:1/x"}), &certificate),
        ];
        for (name, kind, mut client_config, authority) in cases {
            client_config["caBundle"] = json!(STANDARD.encode(authority));
            let configuration = json!({"metadata": {"name": name}, "webhooks": [{
                "name": format!("{name}.test.example"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 1, "clientConfig": client_config,
                "objectSelector": {"matchLabels": {"hook": name}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            }]});
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            let (status, body) = post(address, &path, &configuration).await;
            assert_eq!(status, 201, "{body}");
        }
        let external = json!({"metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
        let (status, body) = post(address, "/api/v1/namespaces/default/services", &external).await;
        assert_eq!(status, 201, "{body}");
        let create = async |hook: &str| {
            post(address, MAPS, &json!({"metadata": {"name": hook, "labels": {"hook": hook}}})).await
        };
        let (status, labelled) = create("label").await;
        assert_eq!((status, &labelled["metadata"]["labels"]), (201, &json!({"reviewed": "yes"})), "{labelled}");
        let failed = |hook: &str, path: &str, reason: &str| {
            let post = format!("Post \"https://{path}?timeout=1s\"");
            format!("Internal error occurred: failed calling webhook \"{hook}.test.example\": failed to call webhook: {post}: {reason}")
        };
        let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
        let expected = [
            ("deny", 400, "admission webhook \"deny.test.example\" denied the request without explanation".to_owned()),
            ("slow", 500, failed("slow", &format!("127.0.0.1:{port}/slow"), "context deadline exceeded")),
            ("untrusted", 500, failed("untrusted", &format!("127.0.0.1:{port}/deny"), unknown)),
            ("service", 400, "admission webhook \"service.test.example\" denied the request without explanation".to_owned()),
            ("closed", 500, failed("closed", "127.0.0.1:1/x", "dial tcp 127.0.0.1:1: connect: connection refused")),
        ];
        for (hook, status, message) in expected {
            let (found, body) = create(hook).await;
            assert_eq!((found, body["message"].as_str()), (status, Some(message.as_str())), "{hook}");
        }
    });
}

/// Makes a certificate whose authority no client knows.
fn make_leaf(key: &KeyPair, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Certificate {
    let authority_key = KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("valid names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("valid names");
    change(&mut params);
    params.signed_by(key, &Issuer::new(authority, authority_key)).expect("a certificate")
}

#[test]
fn a_certificate_that_is_in_the_bundle_itself_is_trusted_and_its_time_names_and_purpose_still_count() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let address = start_server(&mut tasks).await;
        let key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("valid names");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let cases = [
            ("leaf", make_leaf(&key, "127.0.0.1", |_| {}), None),
            ("authority", authority.self_signed(&key).expect("a certificate"), None),
            ("address", make_leaf(&key, "10.1.2.3", |_| {}), Some("certificate is valid for 10.1.2.3, not 127.0.0.1")),
            (
                "name",
                make_leaf(&key, "a.example", |_| {}),
                Some("cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
            ),
            (
                "purpose",
                make_leaf(&key, "127.0.0.1", |params| {
                    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
                }),
                Some("certificate specifies an incompatible key usage"),
            ),
            (
                "expired",
                make_leaf(&key, "127.0.0.1", |params| {
                    (params.not_before, params.not_after) = (date_time_ymd(2024, 1, 1), date_time_ymd(2024, 2, 1));
                }),
                Some("is after 2024-02-01T00:00:00Z"),
            ),
        ];
        for (name, certificate, problem) in cases {
            let port = start_webhooks_with(&mut tasks, &certificate, &key).await;
            let configuration = json!({"metadata": {"name": name}, "webhooks": [{
                "name": format!("{name}.test.example"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}//deny"),
                    "caBundle": STANDARD.encode(certificate.pem()),
                },
                "objectSelector": {"matchLabels": {"hook": name}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            }]});
            let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
            let (status, body) = post(address, path, &configuration).await;
            assert_eq!(status, 201, "{body}");
            let map = json!({"metadata": {"name": name, "labels": {"hook": name}}});
            let (status, body) = post(address, MAPS, &map).await;
            let message = body["message"].as_str().unwrap_or_default();
            match problem {
                None => assert_eq!(status, 400, "{name}: {message}"),
                Some(problem) => assert!(status == 500 && message.ends_with(problem), "{name}: {message}"),
            }
        }
    });
}
