//! Whether the agent does its work: it knows who it is, it hears from the broker, and its cluster answers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many polling intervals may pass without news before the agent counts as cut off.
const INTERVALS_MAX: u32 = 3;

/// What keeps an agent from being ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The broker has not said who this agent is.
    Identity,
    /// No poll has succeeded lately.
    Poll,
    /// The API server did not answer when it was last asked.
    Cluster,
}

impl Missing {
    /// For programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Poll => "poll",
            Self::Cluster => "cluster",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Identity => "the broker has not said yet who this agent is",
            Self::Poll => "no poll of the broker has succeeded lately",
            Self::Cluster => "the API server has not answered",
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    is_found: bool,
    polled: Option<Instant>,
    cluster_answers: bool,
}

/// What was seen last. The library fills it in; whoever holds it may ask.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<Seen>);

impl Readiness {
    /// The broker knows this agent.
    pub fn found(&self) {
        self.lock().is_found = true;
    }

    /// A poll was answered.
    pub fn polled(&self) {
        self.lock().polled = Some(Instant::now());
    }

    /// The API server was asked.
    pub fn asked_cluster(&self, has_answered: bool) {
        self.lock().cluster_answers = has_answered;
    }

    /// What is missing now, for an agent that polls at this interval; nothing when it is ready.
    pub fn missing(&self, polling_interval: Duration) -> Vec<Missing> {
        self.missing_at(Instant::now(), polling_interval)
    }

    fn missing_at(&self, now: Instant, polling_interval: Duration) -> Vec<Missing> {
        let seen = *self.lock();
        let since_poll = seen.polled.map(|polled| now.saturating_duration_since(polled));
        let checks = [
            (Missing::Identity, seen.is_found),
            (Missing::Poll, since_poll.is_some_and(|since| since <= polling_interval * INTERVALS_MAX)),
            (Missing::Cluster, seen.cluster_answers),
        ];
        checks.into_iter().filter(|(_, is_there)| !is_there).map(|(missing, _)| missing).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Nothing here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    #[test]
    fn an_agent_is_ready_once_it_is_known_has_polled_and_its_cluster_answers() {
        let readiness = Readiness::default();
        assert_eq!(readiness.missing(INTERVAL), [Missing::Identity, Missing::Poll, Missing::Cluster]);
        readiness.found();
        readiness.asked_cluster(true);
        assert_eq!(readiness.missing(INTERVAL), [Missing::Poll]);
        readiness.polled();
        assert_eq!(readiness.missing(INTERVAL), []);
        readiness.asked_cluster(false);
        assert_eq!(readiness.missing(INTERVAL), [Missing::Cluster]);
    }

    #[test]
    fn a_poll_counts_for_three_intervals() {
        let readiness = Readiness::default();
        readiness.found();
        readiness.polled();
        readiness.asked_cluster(true);
        let now = Instant::now();
        assert_eq!(readiness.missing_at(now + INTERVAL * 2, INTERVAL), []);
        let later = now + INTERVAL * 3 + Duration::from_millis(1);
        assert_eq!(readiness.missing_at(later, INTERVAL), [Missing::Poll]);
    }
}
