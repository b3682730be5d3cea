//! What a process has counted, read from the text that Prometheus reads, and what that means for calls of an agent.

use std::collections::BTreeMap;
use std::time::Duration;

/// Calls to the API server, by verb.
const CALLS: &str = "sindri_agent_kubernetes_calls_total";
/// What is done to objects, but for updates.
const WRITES: [&str; 4] = ["create", "patch", "delete", "other"];
const REFUSED: &str = "status=\"4xx\"";
const STACKS: &str = "sindri_agent_stacks";
const POLLS: &str = "sindri_agent_polls_total";
const IDLE_POLL: &str = "result=\"nothing_new\"";
const REQUESTS: &str = "sindri_http_requests_total";
const TARGET_STATE: &str = "/target-state\"";
/// How often the Lease is renewed, by a read and a write.
const LEASE_EVERY: Duration = Duration::from_secs(10);

/// Counters with their labels, as they were at one moment.
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Reads a page of counters; lines that are none are left out.
    pub fn new(page: &str) -> Self {
        let counter = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Self(page.lines().filter(|line| !line.starts_with('#')).filter_map(counter).collect())
    }

    /// What was counted since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let more = |(name, value): (&String, &u64)| {
            (name.clone(), value.saturating_sub(earlier.0.get(name).copied().unwrap_or_default()))
        };
        Self(self.0.iter().map(more).collect())
    }

    /// The sum of a counter over all labels that have each of these texts.
    fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let fits =
            |known: &str| known.split('{').next() == Some(name) && labels.iter().all(|label| known.contains(label));
        self.0.iter().filter(|(known, _)| fits(known)).map(|(_, value)| value).sum()
    }

    fn calls_with(&self, verb: &str) -> u64 {
        self.sum(CALLS, &[&label_of(verb)])
    }

    /// Calls of an agent to the API server, without those for its Lease.
    pub fn calls(&self) -> u64 {
        // Each renewal is a read and an update, and nothing else is updated.
        self.sum(CALLS, &[]).saturating_sub(2 * self.calls_with("update"))
    }

    /// Writes of an agent by verb. Without updates: a Lease is updated, and nothing else is. What the server refused was
    /// not written; whether something was that it did not answer well is not known, and counts.
    pub fn writes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let refused = |verb| self.sum(CALLS, &[&label_of(verb), REFUSED]);
        WRITES.into_iter().map(move |verb| (verb, self.calls_with(verb).saturating_sub(refused(verb))))
    }

    /// Writes of an agent in a span of time, without those of its Lease; what was refused was asked for too.
    pub fn writes_within(&self, span: Duration) -> u64 {
        // Whatever is updated more often than a Lease is no Lease.
        let renewals = span.as_secs() / LEASE_EVERY.as_secs() + 1;
        let others = self.calls_with("update").saturating_sub(renewals);
        WRITES.map(|verb| self.calls_with(verb)).iter().sum::<u64>() + others
    }

    /// Stacks of which something is wanted of an agent.
    pub fn stacks(&self) -> u64 {
        self.sum(STACKS, &[])
    }

    /// Polls of an agent that found nothing new.
    pub fn idle_polls(&self) -> u64 {
        self.sum(POLLS, &[IDLE_POLL])
    }

    /// Polls of an agent.
    pub fn polls(&self) -> u64 {
        self.sum(POLLS, &[])
    }

    /// Requests for a target state that a broker answered.
    pub fn target_states(&self) -> u64 {
        self.sum(REQUESTS, &[TARGET_STATE])
    }

    /// Those of them that it answered with nothing new.
    pub fn unchanged_target_states(&self) -> u64 {
        self.sum(REQUESTS, &[TARGET_STATE, "status=\"304\""])
    }
}

fn label_of(verb: &str) -> String {
    format!("verb=\"{verb}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# HELP sindri_agent_polls Polls.\n\
        sindri_agent_kubernetes_calls_total{verb=\"get\",status=\"2xx\"} 10\n\
        sindri_agent_polls_total{result=\"new\"} 1\n";
    const AFTER: &str = "sindri_agent_kubernetes_calls_total{verb=\"get\",status=\"2xx\"} 15\n\
        sindri_agent_kubernetes_calls_total{verb=\"update\",status=\"2xx\"} 2\n\
        sindri_agent_kubernetes_calls_total{verb=\"patch\",status=\"2xx\"} 2\n\
        sindri_agent_kubernetes_calls_total{verb=\"patch\",status=\"4xx\"} 7\n\
        sindri_agent_kubernetes_calls_total{verb=\"patch\",status=\"5xx\"} 1\n\
        sindri_agent_polls_total{result=\"new\"} 1\n\
        sindri_agent_polls_total{result=\"nothing_new\"} 4\n\
        sindri_agent_stacks 2\n\
        sindri_http_requests_total{method=\"GET\",route=\"/agents/{id}/target-state\",status=\"304\"} 4\n\
        sindri_http_requests_total{method=\"GET\",route=\"/agents/{id}/target-state\",status=\"200\"} 1\n\
        sindri_http_requests_total{method=\"GET\",route=\"/agents/{id}\",status=\"200\"} 9\n";

    #[test]
    fn calls_and_writes_are_counted_without_those_for_the_lease() {
        let more = Counts::new(AFTER).since(&Counts::new(BEFORE));
        assert_eq!(more.calls(), 13, "five reads, two of them for the Lease, three writes, seven that were refused");
        assert_eq!(more.writes().collect::<Vec<_>>(), [("create", 0), ("patch", 3), ("delete", 0), ("other", 0)]);
        assert_eq!(more.writes_within(Duration::from_secs(10)), 10, "with those that were refused");
        assert_eq!(more.writes_within(Duration::from_secs(5)), 11, "a Lease is not renewed twice in five seconds");
        assert_eq!((more.polls(), more.idle_polls(), more.stacks()), (4, 4, 2));
    }

    #[test]
    fn requests_are_told_apart_by_their_route_and_their_answer() {
        let counts = Counts::new(AFTER);
        assert_eq!((counts.target_states(), counts.unchanged_target_states()), (5, 4));
    }
}
