//! One attempt to deliver: one signed request over a new connection, and its result.
//!
//! The connection ends with the attempt. Redirects are not followed, because their target is not checked. An error never
//! contains the URL or the value of a header.

use std::error::Error;
use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use jiff::Timestamp;
use sindri_model::limits::{WEBHOOK_TIMEOUT_SECONDS_MAX, WEBHOOK_TIMEOUT_SECONDS_MIN};
use thiserror::Error;
use tokio::time::Instant;
use tower_service::Service;

use super::connect::ConnectError;
use super::headers::ExtraHeaders;
use super::signature::Secret;
use super::target::Target;

/// Limit on the bytes that are read of a response, so that the receiver can finish sending it. They are discarded.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("sindri-broker/", env!("CARGO_PKG_VERSION")));

type BoxError = Box<dyn Error + Send + Sync>;

/// Connector to receivers: every connector of hyper's clients is one.
pub trait Connector:
    Service<
        Uri,
        Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
        Error: Into<BoxError>,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> Connector for T where
    T: Service<
            Uri,
            Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

trait Stream: hyper::rt::Read + hyper::rt::Write + Unpin + Send {}

impl<T: hyper::rt::Read + hyper::rt::Write + Unpin + Send> Stream for T {}

type Connecting = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, BoxError>> + Send>>;

/// Sender of messages to receivers. Cheap to clone.
#[derive(Clone)]
pub struct Sender(Arc<dyn Fn(Uri) -> Connecting + Send + Sync>);

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

/// A message to one receiver.
#[derive(Debug)]
pub(crate) struct WebhookMessage<'a> {
    /// The same at every attempt, so that a receiver can recognize a repetition.
    pub id: &'a str,
    /// Time of this attempt.
    pub sent_at: Timestamp,
    pub target: &'a Target,
    pub headers: &'a ExtraHeaders,
    pub secret: &'a Secret,
    /// JSON.
    pub body: Bytes,
    /// Time limit from the resolution of the name to the head of the response.
    pub timeout: Duration,
}

/// Result of an attempt. It succeeded if there is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Status of the response, if there was one.
    pub status: Option<u16>,
    /// Error for the operator; never contains the URL or a header.
    pub error: Option<String>,
    /// Duration of the attempt.
    pub duration: Duration,
}

/// Reason for which an attempt failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
enum SendError {
    #[error(transparent)]
    Connect(ConnectError),
    #[error("the message is not a valid request")]
    InvalidRequest,
    #[error("the connection was closed before a response")]
    ConnectionClosed,
    #[error("no response within {0:?}")]
    Timeout(Duration),
    #[error("the receiver responded with status {0}, a redirect, and redirects are not followed")]
    Redirect(u16),
    #[error("the receiver responded with status {0}")]
    Status(u16),
}

/// An invalid timeout of a subscription.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a timeout has {WEBHOOK_TIMEOUT_SECONDS_MIN} to {WEBHOOK_TIMEOUT_SECONDS_MAX} seconds, not {0}")]
pub(crate) struct TimeoutError(u64);

/// Checks the timeout of a subscription.
pub(crate) fn parse_timeout(seconds: u64) -> Result<Duration, TimeoutError> {
    match seconds {
        WEBHOOK_TIMEOUT_SECONDS_MIN..=WEBHOOK_TIMEOUT_SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        _ => Err(TimeoutError(seconds)),
    }
}

impl Sender {
    /// Makes a sender over a connector.
    pub fn new(connector: impl Connector) -> Self {
        Self(Arc::new(move |uri| {
            let mut connector = connector.clone();
            Box::pin(async move {
                std::future::poll_fn(|context| connector.poll_ready(context)).await.map_err(Into::into)?;
                let stream = connector.call(uri).await.map_err(Into::into)?;
                Ok(Box::new(stream) as Box<dyn Stream>)
            })
        }))
    }

    /// Makes one attempt.
    pub(crate) async fn send(&self, message: &WebhookMessage<'_>) -> Attempt {
        let start = Instant::now();
        let mut status = None;
        let ended = tokio::time::timeout(message.timeout, self.exchange(message, &mut status)).await;
        let error = match (status, ended) {
            // The status decides; the body is read only so that the receiver can finish sending it.
            (Some(status), _) => status_error(status),
            (None, Ok(Ok(()))) => Some(SendError::ConnectionClosed),
            (None, Ok(Err(error))) => Some(error),
            (None, Err(_)) => Some(SendError::Timeout(message.timeout)),
        };
        Attempt { status, error: error.map(|error| error.to_string()), duration: start.elapsed() }
    }

    async fn exchange(&self, message: &WebhookMessage<'_>, status: &mut Option<u16>) -> Result<(), SendError> {
        let request = request(message).ok_or(SendError::InvalidRequest)?;
        let stream = (self.0)(message.target.uri().clone()).await.map_err(|error| connect_error(&*error))?;
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|_| SendError::ConnectionClosed)?;
        let exchanging = async {
            let response = sender.send_request(request).await.map_err(|_| SendError::ConnectionClosed)?;
            *status = Some(response.status().as_u16());
            discard_body(response).await;
            Ok(())
        };
        let driving = async {
            // A closed connection also ends `exchanging`, after everything that had arrived.
            let _closed = connection.await;
            pending().await
        };
        tokio::select! {
            biased; // The response first, not the end of the connection.
            exchanged = pin!(exchanging) => exchanged,
            never = pin!(driving) => never,
        }
    }
}

fn request(message: &WebhookMessage<'_>) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(message.body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = message.target.path_and_query().parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, AGENT);
    headers.extend(message.headers.as_map().clone());
    headers.insert(HOST, HeaderValue::try_from(message.target.host_header()).ok()?);
    headers.insert(CONTENT_TYPE, JSON);
    headers.extend(message.secret.headers(message.id, message.sent_at, &message.body)?);
    Some(request)
}

/// Reads the body of a response up to a limit. An error is ignored, because the status has decided.
async fn discard_body(response: Response<Incoming>) {
    let (mut body, mut read) = (response.into_body(), 0);
    while read < RESPONSE_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}

fn status_error(status: u16) -> Option<SendError> {
    match status {
        200..=299 => None,
        300..=399 => Some(SendError::Redirect(status)),
        _ => Some(SendError::Status(status)),
    }
}

/// Converts the error of a connector. Of other connectors only the kind is kept, because their text may repeat the URL.
fn connect_error(error: &(dyn Error + Send + Sync + 'static)) -> SendError {
    if let Some(known) = error.downcast_ref::<ConnectError>() {
        return SendError::Connect(*known);
    }
    let kind = error.downcast_ref::<io::Error>().map_or(io::ErrorKind::Other, io::Error::kind);
    SendError::Connect(ConnectError::Unreachable(kind))
}
