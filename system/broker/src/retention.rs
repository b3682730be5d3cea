//! Times for which records are kept.

use std::time::Duration;

/// Time for which records are kept. None: for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Events of agents.
    pub events: Option<Duration>,
    /// Entries of the audit log.
    pub audit: Option<Duration>,
    /// Revisions that are in no target state, and the reports about them.
    pub revisions: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |days: u64| Some(Duration::from_secs(days * 24 * 60 * 60));
        Self { events: days(90), audit: days(365), revisions: days(365) }
    }
}
