//! Readiness of the agent: it is identified, it polls successfully, and its cluster responds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Polling intervals without a successful poll after which the agent is not ready.
const INTERVALS_MAX: u32 = 3;

/// Reason why an agent is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReadyReason {
    /// The broker has not identified the agent.
    Identity,
    /// No poll has succeeded recently.
    Poll,
    /// The API server did not respond to the last ping.
    Cluster,
}

impl NotReadyReason {
    /// Returns the machine-readable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Poll => "poll",
            Self::Cluster => "cluster",
        }
    }

    /// Returns the message for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::Identity => "the broker has not identified this agent yet",
            Self::Poll => "no poll of the broker has succeeded recently",
            Self::Cluster => "the API server does not respond",
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_identified: bool,
    last_poll: Option<Instant>,
    cluster_responds: bool,
}

/// Readiness of one agent. The agent updates it; the probes read it.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<State>);

impl Readiness {
    /// Records that the broker identified the agent.
    pub fn record_identity(&self) {
        self.lock().is_identified = true;
    }

    /// Records a successful poll.
    pub fn record_poll(&self) {
        self.lock().last_poll = Some(Instant::now());
    }

    /// Records a ping of the API server.
    pub fn record_ping(&self, has_responded: bool) {
        self.lock().cluster_responds = has_responded;
    }

    /// Returns why the agent is not ready, given its polling interval; empty if it is ready.
    pub fn not_ready_reasons(&self, polling_interval: Duration) -> Vec<NotReadyReason> {
        self.not_ready_reasons_at(Instant::now(), polling_interval)
    }

    fn not_ready_reasons_at(&self, now: Instant, polling_interval: Duration) -> Vec<NotReadyReason> {
        let state = *self.lock();
        let since_poll = state.last_poll.map(|poll| now.saturating_duration_since(poll));
        let checks = [
            (NotReadyReason::Identity, state.is_identified),
            (NotReadyReason::Poll, since_poll.is_some_and(|since| since <= polling_interval * INTERVALS_MAX)),
            (NotReadyReason::Cluster, state.cluster_responds),
        ];
        checks.into_iter().filter(|(_, holds)| !holds).map(|(reason, _)| reason).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change under the lock is complete in itself, so a poisoned lock still holds a valid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    #[test]
    fn an_agent_is_ready_once_it_is_identified_has_polled_and_its_cluster_responds() {
        let readiness = Readiness::default();
        assert_eq!(
            readiness.not_ready_reasons(INTERVAL),
            [NotReadyReason::Identity, NotReadyReason::Poll, NotReadyReason::Cluster]
        );
        readiness.record_identity();
        readiness.record_ping(true);
        assert_eq!(readiness.not_ready_reasons(INTERVAL), [NotReadyReason::Poll]);
        readiness.record_poll();
        assert_eq!(readiness.not_ready_reasons(INTERVAL), []);
        readiness.record_ping(false);
        assert_eq!(readiness.not_ready_reasons(INTERVAL), [NotReadyReason::Cluster]);
    }

    #[test]
    fn a_poll_counts_for_three_intervals() {
        let readiness = Readiness::default();
        readiness.record_identity();
        readiness.record_poll();
        readiness.record_ping(true);
        let now = Instant::now();
        assert_eq!(readiness.not_ready_reasons_at(now + INTERVAL * 2, INTERVAL), []);
        let later = now + INTERVAL * 3 + Duration::from_millis(1);
        assert_eq!(readiness.not_ready_reasons_at(later, INTERVAL), [NotReadyReason::Poll]);
    }
}
