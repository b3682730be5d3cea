//! Bodies: a request's body has a deadline, and a request ends with the body of its response.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};

use super::deadlines::RequestGuard;
use crate::api::http::connection_info::BodyTimeoutFlag;

/// The body of a request did not arrive in time.
#[derive(Clone, Copy, Debug, Error)]
#[error("the body did not arrive in time")]
pub(super) struct BodyTimeout;

/// Body of a request with a deadline.
pub(super) struct TimedBody {
    incoming: Incoming,
    deadline: Instant,
    /// Created on the first wait, because most bodies have arrived with their head.
    timer: Option<Pin<Box<Sleep>>>,
    flag: BodyTimeoutFlag,
}

impl TimedBody {
    pub(super) fn new(incoming: Incoming, deadline: Instant, flag: BodyTimeoutFlag) -> Self {
        Self { incoming, deadline, timer: None, flag }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let deadline = self.deadline;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.flag.set();
        Poll::Ready(Some(Err(axum::Error::new(BodyTimeout))))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Body of a response; the request ends when it is dropped.
pub(super) struct ResponseBody {
    body: Body,
    _guard: RequestGuard,
}

impl ResponseBody {
    pub(super) fn new(body: Body, guard: RequestGuard) -> Self {
        Self { body, _guard: guard }
    }
}

impl HttpBody for ResponseBody {
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
