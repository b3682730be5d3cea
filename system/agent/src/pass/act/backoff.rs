//! Pauses between repeated reads, doubled each time, up to a total time.

use std::time::Duration;

/// First pause.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// Remaining time and next pause.
pub struct Backoff {
    remaining: Duration,
    pause: Duration,
}

impl Backoff {
    /// Returns a backoff whose pauses take `total` together.
    pub fn new(total: Duration) -> Self {
        Self { remaining: total, pause: PAUSE_FIRST }
    }

    /// Pauses; returns false if the time is over.
    pub async fn pause(&mut self) -> bool {
        let pause = self.pause.min(self.remaining);
        tokio::time::sleep(pause).await;
        self.remaining -= pause;
        self.pause *= 2;
        !pause.is_zero()
    }
}
