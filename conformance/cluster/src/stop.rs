//! Interruption: a flag that every wait of this crate checks, and the signals that set it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// Base of the exit code of a program that was ended by a signal.
pub const EXIT_SIGNALLED: u8 = 128;

/// Flag for interruption. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Sets the flag, as for the signal with this number.
    pub fn set(&self, signal: u8) {
        self.0.store(signal, Ordering::SeqCst);
    }

    /// Returns true if the program should end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// Exit code of a program that ends because of the flag.
    pub fn exit_code(&self) -> u8 {
        EXIT_SIGNALLED.saturating_add(self.0.load(Ordering::SeqCst))
    }
}

/// Listens for SIGINT, SIGTERM and SIGHUP on a thread of its own, for `main`.
pub struct Signals {
    stop: Stop,
    cancel: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Starts listening: from now on these signals only set the flag.
    pub fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut signals = runtime.block_on(async {
            let listen = |kind: SignalKind| signal(kind).map(|signal| (kind, signal));
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            kinds.into_iter().map(listen).collect::<io::Result<Vec<_>>>()
        })?;
        let (cancel, cancelled) = oneshot::channel();
        let stop = Stop::default();
        let flag = stop.clone();
        let listen = move || runtime.block_on(set_on_signal(&flag, &mut signals, cancelled));
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(Self { stop, cancel: Some(cancel), thread: Some(thread) })
    }

    /// Returns the flag.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }
}

async fn set_on_signal(stop: &Stop, signals: &mut [(SignalKind, Signal)], cancelled: oneshot::Receiver<()>) {
    let any = std::future::poll_fn(|context| {
        for (kind, signal) in &mut *signals {
            if signal.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(kind.as_raw_value());
            }
        }
        std::task::Poll::Pending
    });
    tokio::select! {
        biased; // a signal counts even if the listener is cancelled at the same time
        number = any => stop.set(u8::try_from(number).unwrap_or(1)),
        _ = cancelled => {}
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        drop(self.cancel.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ended = thread.join();
        }
    }
}
