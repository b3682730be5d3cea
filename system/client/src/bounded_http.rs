//! Requests to other servers than the broker, such as a provider of tokens: over TCP or TLS, with limits on time and size.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::connect::HttpConnector;

use crate::client::Limits;
use crate::root_cause::root_cause;
use crate::tls::{Trust, TrustError, with_tls};
use crate::transport::{Transport, pool_connections};

/// An HTTP client with limits. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct BoundedHttp {
    transport: Arc<dyn Transport>,
    limits: Limits,
}

impl BoundedHttp {
    /// Creates a client of the server at this URL. With TLS it trusts the certificate authorities that this machine trusts.
    pub fn new(url: &str, limits: Limits) -> Result<Self, TrustError> {
        let mut connector = HttpConnector::new();
        if !url.starts_with("https:") {
            return Ok(Self { transport: Arc::new(pool_connections(connector)), limits });
        }
        connector.enforce_http(false);
        let connector = with_tls(connector, &Trust::from_system()?);
        Ok(Self { transport: Arc::new(pool_connections(connector)), limits })
    }

    /// Sends a request and reads the whole response, of any status. The error says what is wrong.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let exchange = async {
            let response = self.transport.send(request.map(Full::new)).await;
            let (head, body) = response.map_err(|error| root_cause(&error))?.into_parts();
            let body = Limited::new(body, self.limits.response_bytes_max).collect().await;
            let body = body.map_err(|error| root_cause(error.as_ref()))?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        let seconds = self.limits.deadline.as_secs_f32();
        let result = tokio::time::timeout(self.limits.deadline, exchange).await;
        result.unwrap_or_else(|_| Err(format!("no response within {seconds} s")))
    }
}
