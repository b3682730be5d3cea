//! Counters of the agent and the broker, read from their `/metrics` endpoints.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Path of the metrics.
const METRICS: &str = "/metrics";
/// Calls to the API server, by verb.
const CALLS: &str = "sindri_agent_kubernetes_calls_total";
/// Verbs that write objects, except for updates.
const WRITES: [&str; 4] = ["create", "patch", "delete", "other"];
const CLIENT_ERROR: &str = "status=\"4xx\"";
const STACKS: &str = "sindri_agent_stacks";
const POLLS: &str = "sindri_agent_polls_total";
const IDLE_POLL: &str = "result=\"nothing_new\"";
const REQUESTS: &str = "sindri_http_requests_total";
const METRICS_ROUTE: &str = "route=\"/metrics\"";
const TARGET_STATE: &str = "/target-state\"";
/// Time between two renewals of the Lease, each with a read and a write.
const LEASE_INTERVAL: Duration = Duration::from_secs(10);

/// Values of counters with their labels, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads the counters of the process at `HOST:PORT`.
    pub async fn fetch(address: &str) -> Result<Self, String> {
        fetch_page(address, METRICS).await.map(|page| Self::parse(&page))
    }

    /// Parses a page in Prometheus' text format. Lines that are no integer counters are skipped.
    fn parse(page: &str) -> Self {
        let counter = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Self(page.lines().filter(|line| !line.starts_with('#')).filter_map(counter).collect())
    }

    /// Returns the increments since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let increment = |(name, value): (&String, &u64)| {
            (name.clone(), value.saturating_sub(earlier.0.get(name).copied().unwrap_or_default()))
        };
        Self(self.0.iter().map(increment).collect())
    }

    /// Returns the sum of a counter over all label sets that contain each of these texts.
    fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let matches =
            |known: &str| known.split('{').next() == Some(name) && labels.iter().all(|label| known.contains(label));
        self.0.iter().filter(|(known, _)| matches(known)).map(|(_, value)| value).sum()
    }

    fn calls_with(&self, verb: &str) -> u64 {
        self.sum(CALLS, &[&verb_label(verb)])
    }

    /// Number of the agent's calls to the API server, without those for its Lease.
    pub fn calls(&self) -> u64 {
        // Each renewal is a read and an update; nothing else is updated.
        self.sum(CALLS, &[]).saturating_sub(2 * self.calls_with("update"))
    }

    /// Number of the agent's writes by verb, without updates, which only renew the Lease. Writes with a 4xx response are not
    /// counted; those with a 5xx response or none are, because the server may have committed them.
    pub fn writes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rejected = |verb| self.sum(CALLS, &[&verb_label(verb), CLIENT_ERROR]);
        WRITES.into_iter().map(move |verb| (verb, self.calls_with(verb).saturating_sub(rejected(verb))))
    }

    /// Number of the agent's writes in a span of time, without those for its Lease. Rejected writes count too.
    pub fn writes_within(&self, span: Duration) -> u64 {
        // Updates beyond the renewals of the Lease count as writes.
        let renewals = span.as_secs() / LEASE_INTERVAL.as_secs() + 1;
        let others = self.calls_with("update").saturating_sub(renewals);
        WRITES.map(|verb| self.calls_with(verb)).iter().sum::<u64>() + others
    }

    /// Number of stacks in the agent's target state.
    pub fn stacks(&self) -> u64 {
        self.sum(STACKS, &[])
    }

    /// Number of the agent's polls that returned nothing new.
    pub fn idle_polls(&self) -> u64 {
        self.sum(POLLS, &[IDLE_POLL])
    }

    /// Number of the agent's polls.
    pub fn polls(&self) -> u64 {
        self.sum(POLLS, &[])
    }

    /// Number of the broker's responses, without those with metrics.
    pub fn requests(&self) -> u64 {
        self.sum(REQUESTS, &[]).saturating_sub(self.sum(REQUESTS, &[METRICS_ROUTE]))
    }

    /// Number of the broker's responses with a target state.
    pub fn target_states(&self) -> u64 {
        self.sum(REQUESTS, &[TARGET_STATE])
    }

    /// Number of the broker's 304 responses to requests for a target state.
    pub fn unchanged_target_states(&self) -> u64 {
        self.sum(REQUESTS, &[TARGET_STATE, "status=\"304\""])
    }
}

fn verb_label(verb: &str) -> String {
    format!("verb=\"{verb}\"")
}

/// Reads a page over a connection of its own: a connection must not outlive the `block_on` that drives it.
pub(crate) async fn fetch_page(address: &str, path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("http://{address}{path}: {error}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await.map_err(failed)?;
    match response.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(format!("http://{address}{path}: {}", response.lines().next().unwrap_or_default())),
    }
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
        sindri_http_requests_total{method=\"GET\",route=\"/agents/{id}\",status=\"200\"} 9\n\
        sindri_http_requests_total{method=\"GET\",route=\"/metrics\",status=\"200\"} 3\n";

    #[test]
    fn calls_and_writes_are_counted_without_those_for_the_lease() {
        let more = Counters::parse(AFTER).since(&Counters::parse(BEFORE));
        assert_eq!(more.calls(), 13, "three reads without those for the Lease, three writes, seven rejected writes");
        assert_eq!(more.writes().collect::<Vec<_>>(), [("create", 0), ("patch", 3), ("delete", 0), ("other", 0)]);
        assert_eq!(more.writes_within(Duration::from_secs(10)), 10, "with rejected writes");
        assert_eq!(more.writes_within(Duration::from_secs(5)), 11, "a Lease is not renewed twice in five seconds");
        assert_eq!((more.polls(), more.idle_polls(), more.stacks()), (4, 4, 2));
    }

    #[test]
    fn requests_are_distinguished_by_route_and_status() {
        let counts = Counters::parse(AFTER);
        assert_eq!((counts.target_states(), counts.unchanged_target_states()), (5, 4));
        assert_eq!(counts.requests(), 14, "without those for metrics");
    }
}
