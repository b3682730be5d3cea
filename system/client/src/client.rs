//! One request to the broker and its response: URL, key, timeout, size limit and errors.
//!
//! The operations themselves are in one file per resource.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LINK};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use sindri_model::Problem;
use sindri_model::wire::{PROCESS_HEADER, STRICT_HEADER};
use sindri_traces::SPANS;
use tracing::{Instrument, Span};

use crate::broker_kind::ObservedKind;
use crate::connection_failure::ConnectionFailure;
use crate::connector::Connector;
use crate::error::{ClientError, ClientSetupError, UNEXPLAINED_CODE};
use crate::root_cause::root_cause;
use crate::transport::{Transport, pool_connections};

const API_PATH: &str = "/api/v1";
/// Limit on the number of pages of a list.
const PAGES_MAX: usize = 1_000;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
/// Maximum length of an error message that a proxy sent instead of the broker.
const PROXY_MESSAGE_CHARS_MAX: usize = 120;

/// Limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Timeout from the first byte sent to the last byte received.
    pub deadline: Duration,
    /// Maximum size of a response.
    pub response_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(30), response_bytes_max: 256 * 1024 * 1024 }
    }
}

/// A client of one broker with one key. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    base_url: String,
    /// Value of the header, which clones share; `None` for operations that need no key.
    authorization: Arc<Mutex<Option<HeaderValue>>>,
    limits: Limits,
    is_strict: bool,
    /// Process in whose name reports are made.
    process: Option<HeaderValue>,
    pub(crate) broker_kind: ObservedKind,
}

/// Returns the value of the header with a key, which is not shown in debug output.
fn to_authorization(pak: &str) -> Result<HeaderValue, ClientSetupError> {
    let value = HeaderValue::try_from(format!("Bearer {}", pak.trim()));
    let mut value = value.map_err(|_| ClientSetupError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.base_url)
    }
}

/// Request of one operation.
pub(crate) struct Call {
    /// Description that follows "cannot" in errors: `fetch the target state of agent X`.
    pub operation: String,
    pub method: Method,
    /// Base path: that of the API, or none for what is public.
    base_path: &'static str,
    /// Path below the base path, with the query.
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// Time that the broker may wait before it responds (long polling), in addition to the usual timeout.
    pub long_poll_wait: Duration,
}

/// A call that is being sent.
type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<CompleteResponse, ClientError>> + Send + 'a>>;

/// A complete response with a status below 400.
pub(crate) struct CompleteResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Call {
    pub(crate) fn new(method: Method, path: String, operation: String) -> Self {
        let (headers, body, long_poll_wait) = (Vec::new(), Bytes::new(), Duration::ZERO);
        Self { operation, method, base_path: API_PATH, path, headers, body, long_poll_wait }
    }

    /// Creates a call of an operation that needs no key and is outside the API.
    pub(crate) fn get_public(path: String, operation: String) -> Self {
        Self { base_path: "", ..Self::get(path, operation) }
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

    /// Creates the span of the call. A call that is not part of a request has none.
    fn span(&self) -> Span {
        if Span::current().is_disabled() {
            return Span::none();
        }
        let name = &self.operation;
        tracing::trace_span!(target: SPANS, "call", otel.kind = "client", otel.name = %name, http.request.method = %self.method)
    }

    /// Creates the error for an unusable response.
    pub(crate) fn malformed_response(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Malformed { operation: self.operation.clone(), reason: reason.into() }
    }

    /// Deserializes the body of a response. An error contains the position but no content: a bundle may contain
    /// secrets.
    pub(crate) fn deserialize<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(body).map_err(|error| {
            let kind = match error.classify() {
                Category::Io | Category::Syntax => "it is not JSON",
                Category::Data => "it does not have the type that this operation returns",
                Category::Eof => "it is truncated",
            };
            self.malformed_response(format!("{kind} (line {}, column {})", error.line(), error.column()))
        })
    }
}

impl Client {
    /// Creates a client of the broker at `base_url` (`http://HOST:PORT`, with or without a path) with the key `pak`.
    pub fn new<C: Connector>(connector: C, base_url: Uri, pak: &str) -> Result<Self, ClientSetupError> {
        Self::without_key(connector, base_url)?.with_key(pak)
    }

    /// Creates a client for operations that need no key.
    pub fn without_key<C: Connector>(connector: C, base_url: Uri) -> Result<Self, ClientSetupError> {
        if base_url.scheme().is_none() || base_url.host().is_none() || base_url.query().is_some() {
            return Err(ClientSetupError::Address(base_url.to_string()));
        }
        let base_url = base_url.to_string().trim_end_matches('/').to_owned();
        Ok(Self {
            transport: Arc::new(pool_connections(connector)),
            base_url,
            authorization: Arc::new(Mutex::new(None)),
            limits: Limits::default(),
            is_strict: false,
            process: None,
            broker_kind: ObservedKind::default(),
        })
    }

    /// Returns the same client with the key `pak`.
    pub fn with_key(mut self, pak: &str) -> Result<Self, ClientSetupError> {
        self.authorization = Arc::new(Mutex::new(Some(to_authorization(pak)?)));
        Ok(self)
    }

    /// Replaces the key of this client and all of its clones; returns true if it is another one.
    pub fn replace_key(&self, pak: &str) -> Result<bool, ClientSetupError> {
        let authorization = Some(to_authorization(pak)?);
        let mut current = self.authorization.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *current != authorization;
        *current = authorization;
        Ok(is_new)
    }

    /// Returns the same client with other limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the same client, but the broker rejects fields in the bodies of its requests that it does not know. For
    /// people, who want to know that a broker is older than their program; an agent must go on working with it.
    pub fn with_strict_requests(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Returns the same client for one of several processes of an agent: the broker rejects its reports while another
    /// process is the leader. A name that cannot be sent is not.
    pub fn with_process(mut self, name: &str) -> Self {
        self.process = HeaderValue::try_from(name).ok();
        self
    }

    /// Sends a call and deserializes its JSON response.
    pub(crate) async fn fetch_json<T: DeserializeOwned>(
        &self,
        call: Call,
        expected: StatusCode,
    ) -> Result<T, ClientError> {
        let response = self.send_expecting(&call, expected).await?;
        call.deserialize(&response.body)
    }

    /// Fetches every page of a list. A broker that is not Sindri's sends one page without a link to the next one.
    pub(crate) async fn fetch_list<T: DeserializeOwned>(
        &self,
        path: &str,
        operation: &str,
    ) -> Result<Vec<T>, ClientError> {
        self.fetch_pages(path, String::new(), operation, usize::MAX).await
    }

    /// Fetches pages of a list, of which the first has this query, until there are at least `items_min` items or no more.
    pub(crate) async fn fetch_pages<T: DeserializeOwned>(
        &self,
        path: &str,
        query: String,
        operation: &str,
        items_min: usize,
    ) -> Result<Vec<T>, ClientError> {
        let mut items: Vec<T> = Vec::new();
        let receive = |_: &HeaderMap, mut page: Vec<T>| {
            items.append(&mut page);
            items.len() < items_min
        };
        self.for_each_page(path, query, operation, receive).await?;
        Ok(items)
    }

    /// Passes each page of a list and its headers to a function, until there are no more or the function returns false.
    pub(crate) async fn for_each_page<T: DeserializeOwned>(
        &self,
        path: &str,
        mut query: String,
        operation: &str,
        mut receive: impl FnMut(&HeaderMap, T) -> bool,
    ) -> Result<(), ClientError> {
        for _ in 0..PAGES_MAX {
            let call = Call::get(format!("{path}{query}"), operation.to_owned());
            let response = self.send_expecting(&call, StatusCode::OK).await?;
            let wants_more = receive(&response.headers, call.deserialize(&response.body)?);
            match find_next_query(&response.headers) {
                Some(next) if wants_more => query = next,
                _ => return Ok(()),
            }
        }
        let call = Call::get(path.to_owned(), operation.to_owned());
        Err(call.malformed_response(format!("it has more than {PAGES_MAX} pages")))
    }

    /// Sends a call whose response has no content.
    pub(crate) async fn send_expecting_no_content(&self, call: Call) -> Result<(), ClientError> {
        self.send_expecting(&call, StatusCode::NO_CONTENT).await.map(drop)
    }

    /// Sends a call and checks the status of the response.
    pub(crate) async fn send_expecting(
        &self,
        call: &Call,
        expected: StatusCode,
    ) -> Result<CompleteResponse, ClientError> {
        let response = self.send(call).await?;
        if response.status != expected {
            return Err(call.malformed_response(format!("status {} instead of {expected}", response.status)));
        }
        Ok(response)
    }

    /// Sends a call and reads the whole response; a status of 400 and above is an error. Boxed, so that it is compiled with
    /// this crate, and not with each of its users.
    pub(crate) fn send<'a>(&'a self, call: &'a Call) -> CallFuture<'a> {
        Box::pin(async move {
            let deadline = self.limits.deadline + call.long_poll_wait;
            let result = tokio::time::timeout(deadline, self.send_without_timeout(call).instrument(call.span())).await;
            let response = result.unwrap_or_else(|_| {
                let reason = format!("no response within {} s", deadline.as_secs_f32());
                Err(self.unreachable(call, reason, ConnectionFailure::Other))
            })?;
            if response.status.as_u16() < 400 { Ok(response) } else { Err(to_rejected(call, &response)) }
        })
    }

    async fn send_without_timeout(&self, call: &Call) -> Result<CompleteResponse, ClientError> {
        let request = self.build_request(call)?;
        let response = self.transport.send(request).await;
        let to_unreachable = |error| self.unreachable(call, root_cause(&error), ConnectionFailure::from_error(&error));
        let (head, body) = response.map_err(to_unreachable)?.into_parts();
        let collected = Limited::new(body, self.limits.response_bytes_max).collect().await;
        let body = collected.map_err(|error| self.incomplete_body(call, &*error))?.to_bytes();
        Ok(CompleteResponse { status: head.status, headers: head.headers, body })
    }

    fn build_request(&self, call: &Call) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = format!("{}{}{}", self.base_url, call.base_path, call.path)
            .parse()
            .map_err(|error| call.malformed_response(format!("the URL is invalid: {error}")))?;
        // The value is replaced as a whole, so a poisoned lock still holds a valid one.
        let authorization = self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        sindri_traces::add_headers(request.headers_mut());
        if self.is_strict {
            request.headers_mut().insert(STRICT_HEADER, HeaderValue::from_static("true"));
        }
        if let Some(process) = &self.process {
            request.headers_mut().insert(PROCESS_HEADER, process.clone());
        }
        for (name, value) in &call.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    fn incomplete_body(&self, call: &Call, error: &(dyn std::error::Error + Send + Sync + 'static)) -> ClientError {
        if error.is::<LengthLimitError>() {
            return call.malformed_response(format!("it is larger than {} bytes", self.limits.response_bytes_max));
        }
        let reason = format!("the response was truncated: {}", root_cause(error));
        self.unreachable(call, reason, ConnectionFailure::Other)
    }

    fn unreachable(&self, call: &Call, reason: String, failure: ConnectionFailure) -> ClientError {
        ClientError::Unreachable { operation: call.operation.clone(), broker: self.base_url.clone(), reason, failure }
    }
}

/// Returns the query of the next page, with its question mark, from the link of a response: `<?limit=…&after=…>; rel="next"`.
fn find_next_query(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?.strip_prefix('<')?;
    let (target, parameters) = link.split_once('>')?;
    (target.starts_with('?') && parameters.contains("rel=\"next\"")).then(|| target.to_owned())
}

fn to_rejected(call: &Call, response: &CompleteResponse) -> ClientError {
    let problem = serde_json::from_slice(&response.body).unwrap_or_else(|_| problem_from_proxy(&response.body));
    ClientError::Rejected { operation: call.operation.clone(), status: response.status, problem }
}

/// Converts the body of an error that a proxy sent instead of the broker.
fn problem_from_proxy(body: &[u8]) -> Problem {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().next().unwrap_or_default().trim();
    let message = match line.is_empty() || line.starts_with('<') {
        true => "no explanation was given".to_owned(),
        false => line.chars().take(PROXY_MESSAGE_CHARS_MAX).collect(),
    };
    Problem { code: UNEXPLAINED_CODE.to_owned(), message, details: None }
}
