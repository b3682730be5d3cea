//! The runtime of a thread: every wait has a timeout and ends early when a signal arrives.
//!
//! All waits of a scenario are here. A signal arrives at the runtime of every thread; the caller returns, and each owner ends
//! what it has started.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::time::Duration;

use sindri_cluster::stop::EXIT_SIGNALLED;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Reason for which a wait ended without a result.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WaitError {
    /// SIGINT, SIGTERM or SIGHUP arrived.
    #[error("interrupted")]
    Interrupted,
    /// Timeout.
    #[error("timeout after {0:?}")]
    TimedOut(Duration),
}

/// Tokio runtime on the current thread, with the signals that interrupt it.
pub struct InterruptibleRuntime {
    runtime: Runtime,
    signals: RefCell<Signals>,
    interrupted: Cell<Option<u8>>,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal and returns its number.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            biased; // any order: each of them ends the program
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.hangup.recv() => SignalKind::hangup().as_raw_value(),
        }
    }
}

impl InterruptibleRuntime {
    /// Creates the runtime. From now on SIGINT, SIGTERM and SIGHUP (a closed terminal) only interrupt waits.
    pub fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { Signals::listen() })?;
        Ok(Self { runtime, signals: RefCell::new(signals), interrupted: Cell::new(None) })
    }

    /// Returns the exit code for the signal that arrived, if one did.
    pub fn interrupt_code(&self) -> Option<u8> {
        self.interrupted.get()
    }

    /// Runs a future to its end, at most for the given time.
    pub fn block_on<T>(&self, within: Duration, work: impl Future<Output = T>) -> Result<T, WaitError> {
        if self.interrupt_code().is_some() {
            return Err(WaitError::Interrupted);
        }
        let mut signals = self.signals.borrow_mut();
        let signals = &mut *signals;
        self.runtime.block_on(async {
            tokio::select! {
                biased; // a signal counts even if the work never yields to the timer
                number = signals.next() => {
                    let number = u8::try_from(number).unwrap_or_default();
                    self.interrupted.set(Some(EXIT_SIGNALLED.saturating_add(number)));
                    Err(WaitError::Interrupted)
                }
                ended = tokio::time::timeout(within, work) => ended.map_err(|_| WaitError::TimedOut(within)),
            }
        })
    }

    /// Waits for the given time.
    pub fn sleep(&self, span: Duration) -> Result<(), WaitError> {
        match self.block_on(span, std::future::pending::<()>()) {
            Ok(()) | Err(WaitError::TimedOut(_)) => Ok(()),
            Err(WaitError::Interrupted) => Err(WaitError::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Signals are tested with a process of its own, because they interrupt all waits of a process.
    #[test]
    fn a_wait_has_a_timeout() {
        let runtime = InterruptibleRuntime::new().unwrap();
        let bound = Duration::from_millis(10);
        assert_eq!(runtime.block_on(bound, async { 3 }), Ok(3));
        assert_eq!(runtime.block_on(bound, std::future::pending::<()>()), Err(WaitError::TimedOut(bound)));
        assert_eq!(runtime.sleep(bound), Ok(()));
        assert_eq!(runtime.interrupt_code(), None);
    }
}
