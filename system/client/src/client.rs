//! One request to the broker and its answer: address, key, deadline, size, and the shape of errors.
//!
//! Left out: the operations themselves, which are in a file per subject.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use sindri_model::Problem;

use crate::error::{ClientError, ClientSetupError};
use crate::transport::{Connector, Transport, pooled, root_cause};

const API: &str = "/api/v1";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
/// The longest error text that is passed on when it is not the broker's own.
const FOREIGN_TEXT_CHARS_MAX: usize = 120;

/// The bounds of one request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first byte sent to the last byte received.
    pub deadline: Duration,
    /// The largest answer that is read.
    pub answer_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(30), answer_bytes_max: 256 * 1024 * 1024 }
    }
}

/// A client of one broker with one key. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    base: String,
    authorization: HeaderValue,
    limits: Limits,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.base)
    }
}

/// What one operation sends.
pub(crate) struct Call {
    /// As it reads after "cannot": `fetch the target state of agent X`.
    pub operation: String,
    pub method: Method,
    /// Below the API's base path, with the query.
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// How long the broker is asked to wait, on top of the usual deadline.
    pub patience: Duration,
}

/// A complete answer with a status below 400.
pub(crate) struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Call {
    pub(crate) fn new(method: Method, path: String, operation: String) -> Self {
        Self { operation, method, path, headers: Vec::new(), body: Bytes::new(), patience: Duration::ZERO }
    }

    pub(crate) fn get(path: String, operation: String) -> Self {
        Self::new(Method::GET, path, operation)
    }

    pub(crate) fn with_json(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body).expect("wire types have string keys only").into();
        self.with_header(CONTENT_TYPE, JSON)
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The answer to this call is not usable.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Malformed { operation: self.operation.clone(), reason: reason.into() }
    }

    /// Reads the body of an answer as what the operation returns. The error tells where, and not what: the
    /// text of a bundle may be a secret.
    pub(crate) fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| {
            let kind = match error.classify() {
                Category::Io | Category::Syntax => "it is not JSON",
                Category::Data => "it is not what this operation returns",
                Category::Eof => "it ends too early",
            };
            self.malformed(format!("{kind} (line {}, column {})", error.line(), error.column()))
        })
    }
}

impl Client {
    /// A client of the broker at `base` (`http://HOST:PORT`, with or without a path) that shows `pak`.
    pub fn new<C: Connector>(connector: C, base: Uri, pak: &str) -> Result<Self, ClientSetupError> {
        if base.scheme().is_none() || base.host().is_none() || base.query().is_some() {
            return Err(ClientSetupError::Address(base.to_string()));
        }
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {}", pak.trim())).map_err(|_| ClientSetupError::Key)?;
        authorization.set_sensitive(true);
        let base = base.to_string().trim_end_matches('/').to_owned();
        Ok(Self { transport: Arc::new(pooled(connector)), base, authorization, limits: Limits::default() })
    }

    /// The same client with other bounds.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sends a call whose answer is JSON.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: Call, expected: StatusCode) -> Result<T, ClientError> {
        let answered = self.expect(&call, expected).await?;
        call.read(&answered.body)
    }

    /// Sends a call whose answer has no content.
    pub(crate) async fn execute(&self, call: Call) -> Result<(), ClientError> {
        self.expect(&call, StatusCode::NO_CONTENT).await.map(drop)
    }

    /// Sends a call whose answer has this status.
    pub(crate) async fn expect(&self, call: &Call, expected: StatusCode) -> Result<Answered, ClientError> {
        let answered = self.send(call).await?;
        if answered.status != expected {
            return Err(call.malformed(format!("status {} instead of {expected}", answered.status)));
        }
        Ok(answered)
    }

    /// Sends a call and reads the whole answer; a status of 400 and above is a refusal.
    pub(crate) async fn send(&self, call: &Call) -> Result<Answered, ClientError> {
        let deadline = self.limits.deadline + call.patience;
        let exchange = tokio::time::timeout(deadline, self.exchange(call)).await;
        let answered = exchange.unwrap_or_else(|_| {
            Err(self.unreachable(call, format!("no answer within {} s", deadline.as_secs_f32())))
        })?;
        if answered.status.as_u16() < 400 { Ok(answered) } else { Err(refused(call, &answered)) }
    }

    async fn exchange(&self, call: &Call) -> Result<Answered, ClientError> {
        let request = self.request(call)?;
        let response = self.transport.send(request).await;
        let (head, body) = response.map_err(|error| self.unreachable(call, root_cause(&error)))?.into_parts();
        let collected = Limited::new(body, self.limits.answer_bytes_max).collect().await;
        let body = collected.map_err(|error| self.broken_body(call, &*error))?.to_bytes();
        Ok(Answered { status: head.status, headers: head.headers, body })
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = format!("{}{API}{}", self.base, call.path)
            .parse()
            .map_err(|error| call.malformed(format!("the address cannot be written: {error}")))?;
        request.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        for (name, value) in &call.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    fn broken_body(&self, call: &Call, error: &(dyn std::error::Error + Send + Sync + 'static)) -> ClientError {
        if error.is::<LengthLimitError>() {
            return call.malformed(format!("it is larger than {} bytes", self.limits.answer_bytes_max));
        }
        self.unreachable(call, format!("the answer broke off: {}", root_cause(error)))
    }

    fn unreachable(&self, call: &Call, reason: String) -> ClientError {
        ClientError::Unreachable { operation: call.operation.clone(), broker: self.base.clone(), reason }
    }
}

fn refused(call: &Call, answered: &Answered) -> ClientError {
    let problem = serde_json::from_slice(&answered.body).unwrap_or_else(|_| foreign(&answered.body));
    ClientError::Refused { operation: call.operation.clone(), status: answered.status, problem }
}

/// An error that did not come from a broker, such as the page of a proxy.
fn foreign(body: &[u8]) -> Problem {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default().trim();
    let message = match line.is_empty() || line.starts_with('<') {
        true => "no explanation was given".to_owned(),
        false => line.chars().take(FOREIGN_TEXT_CHARS_MAX).collect(),
    };
    Problem { code: "unexplained".to_owned(), message, details: None }
}
