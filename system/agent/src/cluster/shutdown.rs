//! How an agent ends: what is in hand is finished, nothing else is begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether the agent is to end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    is_asked: AtomicBool,
    waiting: Notify,
}

impl Stop {
    /// From now on nothing is begun.
    pub fn ask(&self) {
        self.0.is_asked.store(true, Ordering::Relaxed);
        self.0.waiting.notify_waiters();
    }

    /// Whether that was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.is_asked.load(Ordering::Relaxed)
    }

    /// Ends when it is asked for.
    pub async fn asked(&self) {
        let waiting = self.0.waiting.notified();
        if !self.is_asked() {
            waiting.await;
        }
    }
}
