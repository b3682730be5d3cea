//! HTTP endpoints for the kubelet and Prometheus: liveness, readiness and metrics.
//!
//! Three paths, no authentication, one request for each connection. The caller passes the listener in.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use sindri_model::Problem;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::metrics::Metrics;
use super::readiness::{NotReadyReason, Readiness, activation_command, describe_inactive};

/// Most open connections; further ones are accepted when one ends.
const CONNECTIONS_MAX: usize = 64;
/// Time limit of a connection.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
/// Largest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METRICS: HeaderValue = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// State that the endpoints return.
#[derive(Clone, Debug)]
pub struct Probes {
    /// Metrics of the agent.
    pub metrics: Arc<Metrics>,
    /// Readiness of the agent.
    pub readiness: Arc<Readiness>,
    /// Polling interval of the agent.
    pub polling_interval: Duration,
    /// Name of the agent.
    pub agent: String,
}

impl Probes {
    /// Serves forever. Connections belong to this future: dropping it ends them.
    pub async fn serve(&self, listener: TcpListener) -> Infallible {
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                biased; // ended connections first: they make room for new ones
                Some(_ended) = connections.join_next() => {}
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(serve_connection(stream, self.clone()))),
                    Err(error) => {
                        tracing::warn!("cannot accept a connection for probes: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    fn respond(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        match path {
            "/healthz" | "/readyz" | "/metrics" if ![Method::GET, Method::HEAD].contains(method) => {
                let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD are allowed");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
            "/healthz" => response(StatusCode::OK, TEXT, "ok"),
            "/readyz" => self.respond_ready(),
            "/metrics" => response(StatusCode::OK, METRICS, self.metrics.render()),
            _ => response(StatusCode::NOT_FOUND, TEXT, "the paths are /healthz, /readyz and /metrics"),
        }
    }

    fn respond_ready(&self) -> Response<Full<Bytes>> {
        let reasons = self.readiness.not_ready_reasons(self.polling_interval);
        if reasons.is_empty() && self.readiness.is_inactive() {
            // It works, and an update of its Deployment must not wait until it is activated.
            let problem = Problem {
                code: "inactive".to_owned(),
                message: describe_inactive(&self.agent),
                details: Some(json!({"status": "inactive", "activate": activation_command(&self.agent)})),
            };
            let body = serde_json::to_vec(&problem).expect("a problem has string keys only");
            return response(StatusCode::OK, JSON, body);
        }
        if reasons.is_empty() {
            let text =
                if self.readiness.is_standby() { "ok: standby, another process of this agent acts" } else { "ok" };
            return response(StatusCode::OK, TEXT, text);
        }
        let problem = Problem {
            code: "not_ready".to_owned(),
            message: reasons.iter().map(|reason| reason.message()).collect::<Vec<_>>().join("; "),
            details: Some(json!({"missing": reasons.iter().map(NotReadyReason::code).collect::<Vec<_>>()})),
        };
        let body = serde_json::to_vec(&problem).expect("a problem has string keys only");
        response(StatusCode::SERVICE_UNAVAILABLE, JSON, body)
    }
}

fn response(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

async fn serve_connection(stream: TcpStream, probes: Probes) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = probes.respond(request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    });
    let mut protocol = http1::Builder::new();
    // The time limit of the whole connection also bounds the head.
    protocol.keep_alive(false).header_read_timeout(None).max_header_size(HEAD_BYTES_MAX);
    let connection = protocol.serve_connection(TokioIo::new(stream), service);
    // A peer that disconnects, does not speak HTTP or takes too long is ignored.
    let _ended = tokio::time::timeout(CONNECTION_TIME_MAX, connection).await;
}
