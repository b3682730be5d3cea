//! Waiting for real things: for a bounded time, and never longer than until someone asks the program to end.
//!
//! The program has one thread, and all its waiting is done here. A signal cuts the wait short, the caller returns,
//! and what was started is ended where it is owned.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use sindri_cluster::stop::EXIT_SIGNALLED;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

/// Why a wait ended without its result.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Cut {
    /// SIGINT, SIGTERM or SIGHUP came.
    #[error("interrupted")]
    Interrupted,
    /// The time was up.
    #[error("no end within {0:?}")]
    TooLong(Duration),
}

/// The runtime of the program and its signals.
pub struct Waiter {
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

    /// The number of the next signal.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            biased; // each of them ends the program
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.hangup.recv() => SignalKind::hangup().as_raw_value(),
        }
    }
}

impl Waiter {
    /// From now on SIGINT, SIGTERM and SIGHUP (a terminal that was closed) cut waits short and do nothing else.
    pub fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { Signals::listen() })?;
        Ok(Self { runtime, signals: RefCell::new(signals), interrupted: Cell::new(None) })
    }

    /// The exit code for the signal that came, if one came.
    pub fn interrupted(&self) -> Option<u8> {
        self.interrupted.get()
    }

    /// Waits for work to end.
    pub fn wait<T>(&self, within: Duration, work: impl Future<Output = T>) -> Result<T, Cut> {
        if self.interrupted().is_some() {
            return Err(Cut::Interrupted);
        }
        let mut signals = self.signals.borrow_mut();
        let signals = &mut *signals;
        self.runtime.block_on(async {
            tokio::select! {
                biased; // a signal counts even when the work is always ready
                number = signals.next() => {
                    let number = u8::try_from(number).unwrap_or_default();
                    self.interrupted.set(Some(EXIT_SIGNALLED.saturating_add(number)));
                    Err(Cut::Interrupted)
                }
                ended = tokio::time::timeout(within, work) => ended.map_err(|_| Cut::TooLong(within)),
            }
        })
    }

    /// Does something besides, whenever somebody waits and at no other time, until what this returns is dropped.
    pub fn besides(&self, work: impl Future<Output = Infallible> + Send + 'static) -> JoinSet<Infallible> {
        let mut owner = JoinSet::new();
        owner.spawn_on(work, self.runtime.handle());
        owner
    }

    /// Lets time pass.
    pub fn pause(&self, span: Duration) -> Result<(), Cut> {
        match self.wait(span, std::future::pending::<()>()) {
            Ok(()) | Err(Cut::TooLong(_)) => Ok(()),
            Err(Cut::Interrupted) => Err(Cut::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_is_done_besides_is_done_while_somebody_waits_and_ends_with_its_owner() {
        let (waiter, held) = (Waiter::new().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = held.clone();
        let owner = waiter.besides(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        assert_eq!(held.load(Ordering::Relaxed), 0);
        waiter.pause(Duration::from_millis(50)).unwrap();
        assert!(held.load(Ordering::Relaxed) > 1);
        drop(owner);
        waiter.pause(Duration::from_millis(10)).unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    // That a signal cuts waits is tested with a process of its own: every waiter of a process hears it.
    #[test]
    fn a_wait_is_bounded() {
        let waiter = Waiter::new().unwrap();
        let bound = Duration::from_millis(10);
        assert_eq!(waiter.wait(bound, async { 3 }), Ok(3));
        assert_eq!(waiter.wait(bound, std::future::pending::<()>()), Err(Cut::TooLong(bound)));
        assert_eq!(waiter.pause(bound), Ok(()));
        assert_eq!(waiter.interrupted(), None);
    }
}
