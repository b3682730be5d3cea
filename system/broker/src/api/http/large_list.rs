//! Lists of large records: the permit for one, serialization away from the threads of connections, and a body that holds the
//! permit until it is sent.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LINK};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use super::authentication::Actor;
use super::describe::{DescribeRequest, DescribeResponse, Operation};
use super::error_response::ErrorResponse;
use super::pagination::ListResponse;
use crate::broker::Broker;
use crate::list_permits::ListPermit;

/// Size from which a list is serialized on another thread.
const LARGE_BYTES: usize = 64 * 1024;
/// Size of a part of the body: the connection asks for the next part when it has sent most of those before.
const PART_BYTES: usize = 64 * 1024;

/// Permit to respond with a list of large records.
pub(crate) struct LargeList(ListPermit);

impl FromRequestParts<Broker> for LargeList {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, broker: &Broker) -> Result<Self, ErrorResponse> {
        let actor = Actor::from_request_parts(parts, broker).await?;
        Self::acquire(broker, actor).await
    }
}

/// Describes nothing: every operation that needs a key may be refused with 429.
impl DescribeRequest for LargeList {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl LargeList {
    /// Waits for a permit.
    pub(crate) async fn acquire(broker: &Broker, actor: Actor) -> Result<Self, ErrorResponse> {
        broker.list_permits.acquire(actor.holder).await.map(Self).ok_or_else(|| {
            let message = "too many lists are read at the same time";
            let error = ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, "too_many_lists", message);
            error.with_retry_after(Duration::ZERO)
        })
    }

    /// Serializes a list. A large one is serialized on another thread, because it takes milliseconds.
    pub(crate) async fn serialize<B: Serialize + Send + 'static>(
        self,
        broker: &Broker,
        list: ListResponse<B>,
    ) -> Result<LargeListResponse<B>, ErrorResponse> {
        let ListResponse { body, next_link, text_bytes } = list;
        self.serialize_built(broker, next_link, text_bytes, move || body).await
    }

    /// Builds and serializes a body of about this size. A large one is built on another thread too.
    pub(crate) async fn serialize_built<B: Serialize>(
        self,
        broker: &Broker,
        next_link: Option<HeaderValue>,
        text_bytes: usize,
        build: impl FnOnce() -> B + Send + 'static,
    ) -> Result<LargeListResponse<B>, ErrorResponse> {
        // Quotes and line ends are escaped.
        let mut text = Vec::with_capacity(text_bytes + text_bytes / 8);
        let work = move || serde_json::to_writer(&mut text, &build()).map(|()| text);
        let text = if text_bytes < LARGE_BYTES { Some(work()) } else { broker.list_offload.run(work).await };
        let failed =
            || ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "a list cannot be serialized");
        let text = text.and_then(Result::ok).ok_or_else(failed)?;
        Ok(LargeListResponse { text: text.into(), next_link, permit: self.0, of: PhantomData })
    }
}

/// One page of a list of large records.
pub(crate) struct LargeListResponse<B> {
    text: Bytes,
    next_link: Option<HeaderValue>,
    permit: ListPermit,
    of: PhantomData<B>,
}

impl<B> IntoResponse for LargeListResponse<B> {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(HoldingBody { rest: self.text, _permit: self.permit }));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(next_link) = self.next_link {
            response.headers_mut().insert(LINK, next_link);
        }
        response
    }
}

impl<B: JsonSchema> DescribeResponse for LargeListResponse<B> {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        ListResponse::<B>::describe(operation, schemas);
    }
}

/// A body in small parts, with a permit.
struct HoldingBody {
    /// Data that was not passed on yet.
    rest: Bytes,
    _permit: ListPermit,
}

impl HttpBody for HoldingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PART_BYTES);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
