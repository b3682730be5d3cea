//! One delivery: one signed request over one fresh connection, and what came of it.
//!
//! The connection belongs to the attempt and ends with it. Redirects are not followed: they would lead where nobody
//! has checked. What an attempt says of a failure never holds the URL or the value of a header.

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
use thiserror::Error;
use tokio::time::Instant;
use tower_service::Service;

use super::connect::ConnectError;
use super::headers::ExtraHeaders;
use super::signature::Secret;
use super::target::Target;

const TIMEOUT_SECONDS_MIN: u64 = 1;
const TIMEOUT_SECONDS_MAX: u64 = 60;
/// What is read of an answer, so that the receiver can finish sending it. None of it is kept.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("sindri-broker/", env!("CARGO_PKG_VERSION")));

type BoxError = Box<dyn Error + Send + Sync>;

/// What makes connections to receivers: every connector of HTTP clients is one.
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

/// Sends messages to receivers. Cheap to clone.
#[derive(Clone)]
pub struct Sender(Arc<dyn Fn(Uri) -> Connecting + Send + Sync>);

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

/// A message on its way to one receiver.
#[derive(Debug)]
pub(crate) struct Delivery<'a> {
    /// The same at every attempt, so that a receiver can tell a repetition.
    pub id: &'a str,
    /// When this attempt is made.
    pub at: Timestamp,
    pub target: &'a Target,
    pub headers: &'a ExtraHeaders,
    pub secret: &'a Secret,
    /// JSON.
    pub body: Bytes,
    /// From the resolution of the name to the head of the answer.
    pub timeout: Duration,
}

/// What came of an attempt. It succeeded if there is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What an operator should know; never the URL or a header.
    pub error: Option<String>,
    /// How long it took.
    pub duration: Duration,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
enum Fault {
    #[error(transparent)]
    Connect(ConnectError),
    #[error("the message cannot be written as a request")]
    Unwritable,
    #[error("the connection broke off before an answer came")]
    BrokenOff,
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("the receiver answered {0}, a redirect, and redirects are not followed")]
    Redirect(u16),
    #[error("the receiver answered {0}")]
    Status(u16),
}

/// A timeout that a subscription may not have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a timeout has {TIMEOUT_SECONDS_MIN} to {TIMEOUT_SECONDS_MAX} seconds, not {0}")]
pub(crate) struct TimeoutError(u64);

/// The timeout of a subscription.
pub(crate) fn timeout_of(seconds: u64) -> Result<Duration, TimeoutError> {
    match seconds {
        TIMEOUT_SECONDS_MIN..=TIMEOUT_SECONDS_MAX => Ok(Duration::from_secs(seconds)),
        _ => Err(TimeoutError(seconds)),
    }
}

impl Sender {
    /// A sender over some connector.
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
    pub(crate) async fn send(&self, delivery: &Delivery<'_>) -> Attempt {
        let start = Instant::now();
        let mut status = None;
        let ended = tokio::time::timeout(delivery.timeout, self.exchange(delivery, &mut status)).await;
        let fault = match (status, ended) {
            // With its status an answer is complete: what follows is only read for the receiver's sake.
            (Some(status), _) => judge(status),
            (None, Ok(Ok(()))) => Some(Fault::BrokenOff),
            (None, Ok(Err(fault))) => Some(fault),
            (None, Err(_)) => Some(Fault::Timeout(delivery.timeout)),
        };
        Attempt { status, error: fault.map(|fault| fault.to_string()), duration: start.elapsed() }
    }

    async fn exchange(&self, delivery: &Delivery<'_>, status: &mut Option<u16>) -> Result<(), Fault> {
        let request = request(delivery).ok_or(Fault::Unwritable)?;
        let stream = (self.0)(delivery.target.uri().clone()).await.map_err(|error| unconnected(&*error))?;
        let (mut sender, connection) = http1::handshake(stream).await.map_err(|_| Fault::BrokenOff)?;
        let asking = async {
            let answer = sender.send_request(request).await.map_err(|_| Fault::BrokenOff)?;
            *status = Some(answer.status().as_u16());
            discard(answer).await;
            Ok(())
        };
        let driving = async {
            // Who asks hears of a broken connection too, after everything that had arrived.
            let _broken = connection.await;
            pending().await
        };
        tokio::select! {
            biased; // the answer counts, not the connection
            answered = pin!(asking) => answered,
            never = pin!(driving) => never,
        }
    }
}

fn request(delivery: &Delivery<'_>) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(delivery.body.clone()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = delivery.target.path_and_query().parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, AGENT);
    headers.extend(delivery.headers.as_map().clone());
    headers.insert(HOST, HeaderValue::try_from(delivery.target.host_header()).ok()?);
    headers.insert(CONTENT_TYPE, JSON);
    headers.extend(delivery.secret.headers(delivery.id, delivery.at, &delivery.body)?);
    Some(request)
}

/// Reads what a receiver sends, up to a bound. Whether it succeeds no longer matters.
async fn discard(answer: Response<Incoming>) {
    let (mut body, mut read) = (answer.into_body(), 0);
    while read < ANSWER_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}

fn judge(status: u16) -> Option<Fault> {
    match status {
        200..=299 => None,
        300..=399 => Some(Fault::Redirect(status)),
        _ => Some(Fault::Status(status)),
    }
}

/// Connectors that are not ours tell the kind of an error only: their words may repeat the URL.
fn unconnected(error: &(dyn Error + Send + Sync + 'static)) -> Fault {
    if let Some(known) = error.downcast_ref::<ConnectError>() {
        return Fault::Connect(*known);
    }
    let kind = error.downcast_ref::<io::Error>().map_or(io::ErrorKind::Other, io::Error::kind);
    Fault::Connect(ConnectError::Unreachable(kind))
}
