//! Lists of large records: the permit for one, serialization away from the threads of connections, and a body that holds the
//! permit until it is sent.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

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
use super::connection_info::CloseConnection;
use super::describe::{DescribeRequest, DescribeResponse, Operation};
use super::error_response::ErrorResponse;
use super::pagination::ListResponse;
use crate::broker::Broker;
use crate::closing_permits::ClosingPermit;

/// Size from which a list is serialized on another thread.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;
/// Size of a part of the body: the connection asks for the next part when it has sent most of those before.
const PART_BYTES: usize = 64 * 1024;

/// Permit to respond with a list of large records.
pub(crate) struct LargeList(ClosingPermit);

/// Request for a [`LargeList`] by a handler that does not always need one.
pub(crate) struct LargeListRequest {
    pub actor: Actor,
    close: CloseConnection,
}

impl<S: Send + Sync> FromRequestParts<S> for LargeListRequest {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let close = parts.extensions.get().cloned().unwrap_or_default();
        Ok(Self { actor: Actor::from_request_parts(parts, state).await?, close })
    }
}

impl FromRequestParts<Broker> for LargeList {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, broker: &Broker) -> Result<Self, ErrorResponse> {
        LargeListRequest::from_request_parts(parts, broker).await?.acquire(broker).await
    }
}

/// Describes nothing: every operation that needs a key may be refused with 429.
impl DescribeRequest for LargeList {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl DescribeRequest for LargeListRequest {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl LargeListRequest {
    /// Waits for a permit.
    pub(crate) async fn acquire(self, broker: &Broker) -> Result<LargeList, ErrorResponse> {
        let permit = broker.list_permits.acquire(self.actor.holder, 1, self.close.0).await;
        permit
            .map(LargeList)
            .ok_or_else(|| ErrorResponse::too_many("too_many_lists", "too many lists are read at the same time"))
    }
}

impl LargeList {
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
    permit: ClosingPermit,
    of: PhantomData<B>,
}

impl<B> IntoResponse for LargeListResponse<B> {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::new(HoldingBody::new(self.text, self.permit)));
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

/// A body in small parts, with the permit for it.
pub(crate) struct HoldingBody<P> {
    /// Data that was not passed on yet.
    rest: Bytes,
    _permit: P,
}

impl<P> HoldingBody<P> {
    pub(crate) fn new(rest: Bytes, permit: P) -> Self {
        Self { rest, _permit: permit }
    }
}

impl<P: Unpin> HttpBody for HoldingBody<P> {
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
