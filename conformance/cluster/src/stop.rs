//! Being asked to end: a flag that every wait here looks at, and the signals that set it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What a shell expects of a program that a signal ended.
pub const EXIT_SIGNALLED: u8 = 128;

/// Whether to go on. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Asks everyone who has this flag to end, as the signal with this number would.
    pub fn set(&self, signal: u8) {
        self.0.store(signal, Ordering::SeqCst);
    }

    /// Whether the end is asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// The exit code of a program that ends because of it.
    pub fn exit_code(&self) -> u8 {
        EXIT_SIGNALLED.saturating_add(self.0.load(Ordering::SeqCst))
    }
}

/// Listens for SIGINT, SIGTERM and SIGHUP on a thread of its own, for `main`.
pub struct Signals {
    stop: Stop,
    silence: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// From now on these signals set the flag and do nothing else.
    pub fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut three = runtime.block_on(async {
            let listen = |kind: SignalKind| signal(kind).map(|signal| (kind, signal));
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            kinds.into_iter().map(listen).collect::<io::Result<Vec<_>>>()
        })?;
        let (silence, silenced) = oneshot::channel();
        let stop = Stop::default();
        let flag = stop.clone();
        let listen = move || runtime.block_on(set_on_signal(&flag, &mut three, silenced));
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(Self { stop, silence: Some(silence), thread: Some(thread) })
    }

    /// The flag.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }
}

async fn set_on_signal(stop: &Stop, signals: &mut [(SignalKind, Signal)], silenced: oneshot::Receiver<()>) {
    let any = std::future::poll_fn(|context| {
        for (kind, signal) in &mut *signals {
            if signal.poll_recv(context).is_ready() {
                return std::task::Poll::Ready(kind.as_raw_value());
            }
        }
        std::task::Poll::Pending
    });
    tokio::select! {
        biased; // a signal counts even if nobody waits for it any more
        number = any => stop.set(u8::try_from(number).unwrap_or(1)),
        _ = silenced => {}
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        drop(self.silence.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported where it happened.
            let _ended = thread.join();
        }
    }
}
