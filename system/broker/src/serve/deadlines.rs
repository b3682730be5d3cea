//! Deadlines of a connection: the phase that it is in, and the time limit of that phase.
//!
//! One value per connection. The stream reports when bytes move, the service when a request begins and its response
//! ends, and the connection's task waits for [`Deadlines::wait_until_exceeded`]. The timer is reset only when a deadline comes
//! nearer, so an ordinary request resets none.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::limits::Limits;

/// A time limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeLimit {
    /// The head of a request did not arrive completely.
    Head,
    /// No request arrived.
    Idle,
    /// The client did not read the response.
    Stall,
}

#[derive(Clone, Copy)]
enum Phase {
    Head { since: Instant },
    Request,
    Idle { since: Instant },
}

struct State {
    phase: Phase,
    /// Time since which the client has read no bytes.
    stalled_since: Option<Instant>,
}

/// Phase of one connection and its time limits.
pub(super) struct Deadlines {
    limits: Limits,
    state: Mutex<State>,
}

impl Deadlines {
    /// Starts with the time limit for the first head.
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let state = State { phase: Phase::Head { since: Instant::now() }, stalled_since: None };
        Arc::new(Self { limits, state: Mutex::new(state) })
    }

    /// Begins a request, which ends when the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.lock().phase = Phase::Request;
        RequestGuard(self.clone())
    }

    /// Resolves when a time limit is exceeded.
    pub(super) async fn wait_until_exceeded(&self) -> TimeLimit {
        let mut timer = pin!(sleep_until(Instant::now() + self.limits.head_time_max));
        poll_fn(|context| {
            loop {
                let due = self.next_deadline();
                if let Some((due, _)) = due
                    && due < timer.deadline()
                {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(context));
                let now = Instant::now();
                match due {
                    Some((due, limit)) if due <= now => return Poll::Ready(limit),
                    Some((due, _)) => timer.as_mut().reset(due),
                    None => timer.as_mut().reset(now + self.limits.idle_time_max),
                }
            }
        })
        .await
    }

    fn next_deadline(&self) -> Option<(Instant, TimeLimit)> {
        let state = self.lock();
        let phase = match state.phase {
            Phase::Head { since } => Some((since + self.limits.head_time_max, TimeLimit::Head)),
            Phase::Request => None,
            Phase::Idle { since } => Some((since + self.limits.idle_time_max, TimeLimit::Idle)),
        };
        let stall = state.stalled_since.map(|since| (since + self.limits.stall_time_max, TimeLimit::Stall));
        phase.into_iter().chain(stall).min_by_key(|(due, _)| *due)
    }

    fn record_read(&self) {
        let mut state = self.lock();
        if let Phase::Idle { .. } = state.phase {
            state.phase = Phase::Head { since: Instant::now() };
        }
    }

    fn record_write(&self, is_ready: bool) {
        let mut state = self.lock();
        match (is_ready, state.stalled_since) {
            (true, Some(_)) => state.stalled_since = None,
            (false, None) => state.stalled_since = Some(Instant::now()),
            (true, None) | (false, Some(_)) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in progress.
pub(super) struct RequestGuard(Arc<Deadlines>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.lock().phase = Phase::Idle { since: Instant::now() };
    }
}

/// A stream that reports reads and writes to [`Deadlines`].
pub(super) struct TimedStream<S> {
    stream: S,
    deadlines: Arc<Deadlines>,
}

impl<S> TimedStream<S> {
    pub(super) fn new(stream: S, deadlines: Arc<Deadlines>) -> Self {
        Self { stream, deadlines }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.deadlines.record_read();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.deadlines.record_write(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.deadlines.record_write(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.deadlines.record_write(flushed.is_ready());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
