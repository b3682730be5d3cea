//! Bodies on their way: a request's body must arrive in time, and an answer's body ends the request.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};

use super::pace::Busy;
use crate::api::http::connection_info::BodyTimeoutFlag;

/// A request's body did not arrive in time.
#[derive(Clone, Copy, Debug, Error)]
#[error("the body did not arrive in time")]
pub(super) struct BodyTimeout;

/// A request's body with a deadline.
pub(super) struct TimedBody {
    incoming: Incoming,
    due: Instant,
    /// Made when the body is waited for: most bodies are there already.
    timer: Option<Pin<Box<Sleep>>>,
    flag: BodyTimeoutFlag,
}

impl TimedBody {
    pub(super) fn new(incoming: Incoming, due: Instant, flag: BodyTimeoutFlag) -> Self {
        Self { incoming, due, timer: None, flag }
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
        let due = self.due;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
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

/// An answer's body; the request is over when it is dropped.
pub(super) struct AnswerBody {
    body: Body,
    _busy: Busy,
}

impl AnswerBody {
    pub(super) fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl HttpBody for AnswerBody {
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
