//! What a kubelet and Prometheus ask an agent: whether it lives, whether it is ready, what it counts.
//!
//! Three paths, no key, one request for each connection. The listener is handed in; where there is none, nobody can ask.

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

use crate::telemetry::metrics::Metrics;
use crate::telemetry::readiness::{Missing, Readiness};

/// Open connections; at that many, no more are accepted until one ends.
const CONNECTIONS_MAX: usize = 64;
/// From the first byte of a connection to the last.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long to wait when the system gives no connection.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METRICS: HeaderValue = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// What the answers are made of.
#[derive(Clone, Debug)]
pub struct Probes {
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Whether the agent is ready.
    pub readiness: Arc<Readiness>,
    /// How often it polls.
    pub polling_interval: Duration,
}

impl Probes {
    /// Answers for ever. Connections belong to this future: dropping it ends them.
    pub async fn serve(&self, listener: TcpListener) -> Infallible {
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                biased; // What ended first: it makes room for the new.
                Some(_ended) = connections.join_next() => {}
                accepted = listener.accept(), if has_room => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(connection(stream, self.clone()))),
                    Err(error) => {
                        tracing::warn!("no connection for probes: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        match path {
            "/healthz" | "/readyz" | "/metrics" if ![Method::GET, Method::HEAD].contains(method) => {
                let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD");
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                refused
            }
            "/healthz" => response(StatusCode::OK, TEXT, "ok"),
            "/readyz" => self.ready(),
            "/metrics" => response(StatusCode::OK, METRICS, self.metrics.text()),
            _ => response(StatusCode::NOT_FOUND, TEXT, "there are /healthz, /readyz and /metrics"),
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        let missing = self.readiness.missing(self.polling_interval);
        if missing.is_empty() {
            return response(StatusCode::OK, TEXT, "ok");
        }
        let problem = Problem {
            code: "not_ready".to_owned(),
            message: missing.iter().map(|missing| missing.words()).collect::<Vec<_>>().join("; "),
            details: Some(json!({"missing": missing.iter().copied().map(Missing::code).collect::<Vec<_>>()})),
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

async fn connection(stream: TcpStream, probes: Probes) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = probes.answer(request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut protocol = http1::Builder::new();
    // The time of the whole connection is bounded, and with it that of the head.
    protocol.keep_alive(false).header_read_timeout(None).max_header_size(HEAD_BYTES_MAX);
    let conversation = protocol.serve_connection(TokioIo::new(stream), service);
    // A peer that goes away, speaks no HTTP or takes too long is its own affair.
    let _ended = tokio::time::timeout(CONNECTION_TIME_MAX, conversation).await;
}
