//! Body of a request for which others may wait: once it has arrived, or is not read any more, its client keeps the connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::closing_permits::OpenRequest;

pub(super) struct HeldBody {
    body: Body,
    _open: OpenRequest,
}

impl HeldBody {
    pub(super) fn new(body: Body, open: OpenRequest) -> Self {
        Self { body, _open: open }
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
