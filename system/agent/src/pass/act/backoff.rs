//! Asking again and again, ever more slowly, until the time is over.

use std::time::Duration;

/// The first pause; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// How much longer to wait for something.
pub struct Patience {
    left: Duration,
    pause: Duration,
}

impl Patience {
    /// So long in all.
    pub fn new(longest: Duration) -> Self {
        Self { left: longest, pause: PAUSE_FIRST }
    }

    /// Pauses; false when the time is over.
    pub async fn pause(&mut self) -> bool {
        let pause = self.pause.min(self.left);
        tokio::time::sleep(pause).await;
        self.left -= pause;
        self.pause *= 2;
        !pause.is_zero()
    }
}
