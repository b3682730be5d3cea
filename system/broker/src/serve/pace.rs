//! How fast a peer must be: which phase its connection is in, and when that phase has lasted too long.
//!
//! One value per connection. The stream says when bytes move, the service when a request begins and its answer
//! ends, and the connection's task waits for [`Pace::exceeded`]. The timer is moved only when a deadline comes
//! nearer, so an ordinary request moves none.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use super::limits::Limits;

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slow {
    /// The head of a request did not arrive whole.
    Head,
    /// No request came.
    Idle,
    /// An answer was not taken.
    Answer,
}

#[derive(Clone, Copy)]
enum Phase {
    Head { since: Instant },
    Busy,
    Idle { since: Instant },
}

struct State {
    phase: Phase,
    /// Since when the peer takes no bytes.
    stalled: Option<Instant>,
}

/// See the module.
pub(super) struct Pace {
    limits: Limits,
    state: Mutex<State>,
}

impl Pace {
    /// A new connection owes its first request at once.
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let state = State { phase: Phase::Head { since: Instant::now() }, stalled: None };
        Arc::new(Self { limits, state: Mutex::new(state) })
    }

    /// A request has begun; its answer has ended when the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.lock().phase = Phase::Busy;
        Busy(self.clone())
    }

    /// Resolves when the peer has taken longer than it may.
    pub(super) async fn exceeded(&self) -> Slow {
        let mut timer = pin!(sleep_until(Instant::now() + self.limits.head_time_max));
        poll_fn(|context| {
            loop {
                let due = self.due();
                if let Some((due, _)) = due
                    && due < timer.deadline()
                {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(context));
                let now = Instant::now();
                match due {
                    Some((due, slow)) if due <= now => return Poll::Ready(slow),
                    Some((due, _)) => timer.as_mut().reset(due),
                    None => timer.as_mut().reset(now + self.limits.idle_time_max),
                }
            }
        })
        .await
    }

    fn due(&self) -> Option<(Instant, Slow)> {
        let state = self.lock();
        let phase = match state.phase {
            Phase::Head { since } => Some((since + self.limits.head_time_max, Slow::Head)),
            Phase::Busy => None,
            Phase::Idle { since } => Some((since + self.limits.idle_time_max, Slow::Idle)),
        };
        let stall = state.stalled.map(|since| (since + self.limits.stall_time_max, Slow::Answer));
        phase.into_iter().chain(stall).min_by_key(|(due, _)| *due)
    }

    fn bytes_came(&self) {
        let mut state = self.lock();
        if let Phase::Idle { .. } = state.phase {
            state.phase = Phase::Head { since: Instant::now() };
        }
    }

    fn bytes_went(&self, went: bool) {
        let mut state = self.lock();
        match (went, state.stalled) {
            (true, Some(_)) => state.stalled = None,
            (false, None) => state.stalled = Some(Instant::now()),
            (true, None) | (false, Some(_)) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here can be left half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request is under way.
pub(super) struct Busy(Arc<Pace>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().phase = Phase::Idle { since: Instant::now() };
    }
}

/// A stream that says when bytes move.
pub(super) struct Paced<S> {
    stream: S,
    pace: Arc<Pace>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, pace: Arc<Pace>) -> Self {
        Self { stream, pace }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pace.bytes_came();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pace.bytes_went(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.pace.bytes_went(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.pace.bytes_went(flushed.is_ready());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
