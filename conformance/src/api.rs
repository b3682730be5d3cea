//! Asking an API server as someone else would: one request over HTTP, status and JSON back.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use sindri_world::stage::ClusterCall;

use crate::waiter::Waiter;

/// Nobody but the story itself asks a cluster under this name.
const SOMEONE_ELSE: &str = "kubectl/story";
/// The longest that a request may take.
const CALL_MAX: Duration = Duration::from_secs(30);
/// The largest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A client of API servers that speak plain HTTP.
pub struct ApiClient {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Default for ApiClient {
    fn default() -> Self {
        // A connection must not outlive the wait in which it is driven: the server may close it in between.
        Self { client: Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http() }
    }
}

impl ApiClient {
    /// Sends a request to the server at `url`; the error names the request.
    pub fn call(&self, waiter: &Waiter, url: &str, call: ClusterCall) -> Result<(u16, Value), String> {
        let what = format!("{} {url}{}", call.method, call.target);
        let answer = waiter.wait(CALL_MAX, self.exchange(url, call));
        answer.map_err(|cut| cut.to_string()).flatten().map_err(|reason| format!("{what}: {reason}"))
    }

    async fn exchange(&self, url: &str, call: ClusterCall) -> Result<(u16, Value), String> {
        let request = Request::builder()
            .method(call.method)
            .uri(format!("{url}{}", call.target))
            .header(header::USER_AGENT, SOMEONE_ELSE)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, call.content_type)
            .body(Full::new(Bytes::from(call.body)))
            .map_err(|error| error.to_string())?;
        let (head, body) = self.client.request(request).await.map_err(|error| error.to_string())?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        // Not every refusal is JSON; its status tells what matters.
        Ok((head.status.as_u16(), serde_json::from_slice(&body.to_bytes()).unwrap_or_default()))
    }
}
