//! Figures of the store in the metrics: read again at most every [`REFRESH_EVERY`], however often they are asked for.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::metrics::Metrics;
use crate::store::Store;

/// Time for which figures are not read again.
const REFRESH_EVERY: Duration = Duration::from_secs(15);
/// Longest wait for the store; after it the figures stay as they were.
const STORE_TIME_MAX: Duration = Duration::from_secs(2);

/// Time of the last refresh.
#[derive(Debug, Default)]
pub(crate) struct FiguresRefresh(Mutex<Option<Instant>>);

impl FiguresRefresh {
    /// Reads the figures of the store into the metrics, unless they are recent; returns true if it was time for it.
    pub(crate) async fn refresh(&self, store: &dyn Store, metrics: &Metrics) -> bool {
        metrics.set_database_usage(store.usage());
        let mut last = self.0.lock().await;
        if last.is_some_and(|last| last.elapsed() < REFRESH_EVERY) {
            return false;
        }
        *last = Some(Instant::now());
        if let Ok(Ok(figures)) = timeout(STORE_TIME_MAX, store.get_figures()).await {
            metrics.set_figures(figures);
        }
        true
    }
}
