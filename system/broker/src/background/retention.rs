//! Deletes records that are older than the settings allow.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use crate::broker::Broker;
use crate::store::{IDEMPOTENCY_KEY_TIME, MESSAGE_WAIT_MAX, RetentionCutoffs, StoreError};

/// Time between two purges.
const PURGE_EVERY: Duration = Duration::from_secs(60 * 60);
/// Largest number of records of each kind that one transaction deletes.
const BATCH_MAX: i64 = 200;
/// Pause between two transactions, for the calls of requests.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after which a purge leaves the rest to the next one.
const PURGE_TIME_MAX: Duration = Duration::from_secs(50 * 60);

impl Broker {
    pub(super) async fn delete_old_records(&self) {
        loop {
            sleep(PURGE_EVERY).await;
            match self.purge().await {
                Ok(0) => {}
                Ok(deleted) => tracing::info!(deleted, "old records were deleted"),
                Err(error) => tracing::warn!(%error, "old records cannot be deleted"),
            }
        }
    }

    /// Deletes old records in small transactions, and returns their number.
    async fn purge(&self) -> Result<u64, StoreError> {
        let (mut deleted, cutoffs, start) = (0, self.retention_cutoffs(), Instant::now());
        while start.elapsed() < PURGE_TIME_MAX {
            match self.store.purge(cutoffs.clone(), BATCH_MAX).await? {
                0 => break,
                more => deleted += more,
            }
            sleep(PAUSE).await;
        }
        Ok(deleted)
    }

    fn retention_cutoffs(&self) -> RetentionCutoffs {
        let (now, retention) = (self.clock.now(), self.live_settings().retention);
        let before =
            |time: Option<Duration>| time.and_then(|time| now.checked_sub(SignedDuration::try_from(time).ok()?).ok());
        RetentionCutoffs {
            events: before(retention.events),
            audit: before(retention.audit),
            revisions: before(retention.revisions),
            idempotency_keys: now.checked_sub(IDEMPOTENCY_KEY_TIME).ok(),
            waiting_messages: now.checked_sub(MESSAGE_WAIT_MAX).ok(),
            expired_proposals: Some(now),
        }
    }
}
