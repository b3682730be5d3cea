//! Readiness of the agent: it is identified, it polls successfully or waits for the Lease, and its cluster responds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Polling intervals without a successful poll after which the agent is not ready.
const INTERVALS_MAX: u32 = 3;

/// Reason why an agent is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReadyReason {
    /// The broker has not identified the agent.
    Identity,
    /// No poll has succeeded recently.
    Poll,
    /// The API server did not respond to the last ping.
    Cluster,
    /// An agent of another name holds the Lease of this cluster.
    OtherAgent(OtherAgent),
    /// The Lease cannot be read or written, for this reason.
    Lease(String),
}

/// Two agents for one cluster, which is a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherAgent {
    /// Name of this agent.
    pub own_name: String,
    /// Name of the agent that holds the Lease.
    pub leader_name: String,
}

/// Part that this process has in leader election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeaderRole {
    /// It acts, or may act soon.
    #[default]
    Candidate,
    /// Another process of the same agent acts; this one takes over when that one ends.
    Standby,
    /// A process of another agent acts.
    Excluded(OtherAgent),
    /// It may not write, because the Lease cannot be read or written, for this reason.
    WithoutLease(String),
}

impl NotReadyReason {
    /// Returns the machine-readable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Poll => "poll",
            Self::Cluster => "cluster",
            Self::OtherAgent(_) => "other_agent",
            Self::Lease(_) => "lease",
        }
    }

    /// Returns the message for people.
    pub fn message(&self) -> String {
        match self {
            Self::Identity => "the broker has not identified this agent yet".to_owned(),
            Self::Poll => "no poll of the broker has succeeded recently".to_owned(),
            Self::Cluster => "the API server does not respond".to_owned(),
            Self::OtherAgent(OtherAgent { own_name, leader_name }) => format!(
                "agent {leader_name} holds the Lease of this cluster, and agent {own_name} waits for it; a cluster has one agent"
            ),
            Self::Lease(reason) => format!("nothing is written without the Lease: {reason}"),
        }
    }
}

/// Returns the command that activates an agent.
pub fn activation_command(agent: &str) -> String {
    format!("sindri agent activate {agent}")
}

/// Returns the message about an agent that is inactive.
pub fn describe_inactive(agent: &str) -> String {
    format!("agent {agent} is inactive at the broker, and writes nothing: run {}", activation_command(agent))
}

#[derive(Clone, Debug, Default)]
struct State {
    is_identified: bool,
    last_poll: Option<Instant>,
    cluster_responds: bool,
    /// Status of the agent at the broker; `None` until it is known.
    is_active: Option<bool>,
    role: LeaderRole,
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

    /// Records the result of leader election.
    pub fn record_role(&self, role: LeaderRole) {
        self.lock().role = role;
    }

    /// Records whether the broker wants the agent to act; returns true if that is new.
    pub fn record_active(&self, is_active: bool) -> bool {
        self.lock().is_active.replace(is_active) != Some(is_active)
    }

    /// Returns true if the broker does not want the agent to act.
    pub fn is_inactive(&self) -> bool {
        self.lock().is_active == Some(false)
    }

    /// Returns true if another process of the same agent acts.
    pub fn is_standby(&self) -> bool {
        self.lock().role == LeaderRole::Standby
    }

    /// Returns why the agent is not ready, given its polling interval; empty if it is ready.
    pub fn not_ready_reasons(&self, polling_interval: Duration) -> Vec<NotReadyReason> {
        self.not_ready_reasons_at(Instant::now(), polling_interval)
    }

    fn not_ready_reasons_at(&self, now: Instant, polling_interval: Duration) -> Vec<NotReadyReason> {
        let state = self.lock().clone();
        let since_poll = state.last_poll.map(|poll| now.saturating_duration_since(poll));
        let has_polled = since_poll.is_some_and(|since| since <= polling_interval * INTERVALS_MAX);
        // A standby does not poll.
        let is_poll_due = matches!(state.role, LeaderRole::Candidate | LeaderRole::WithoutLease(_)) && !has_polled;
        let lease = match state.role {
            LeaderRole::Excluded(other) => Some(NotReadyReason::OtherAgent(other)),
            LeaderRole::WithoutLease(reason) => Some(NotReadyReason::Lease(reason)),
            LeaderRole::Candidate | LeaderRole::Standby => None,
        };
        let reasons = [
            (!state.is_identified).then_some(NotReadyReason::Identity),
            is_poll_due.then_some(NotReadyReason::Poll),
            (!state.cluster_responds).then_some(NotReadyReason::Cluster),
            lease,
        ];
        reasons.into_iter().flatten().collect()
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
    fn a_standby_is_ready_without_polls_and_an_agent_of_another_name_is_not() {
        let readiness = Readiness::default();
        readiness.record_identity();
        readiness.record_ping(true);
        readiness.record_role(LeaderRole::Standby);
        assert_eq!((readiness.not_ready_reasons(INTERVAL), readiness.is_standby()), (vec![], true));
        let other = OtherAgent { own_name: "west".into(), leader_name: "east".into() };
        readiness.record_role(LeaderRole::Excluded(other));
        let reasons = readiness.not_ready_reasons(INTERVAL);
        let message = reasons.iter().map(NotReadyReason::message).collect::<String>();
        assert!(message.contains("agent east holds") && message.contains("agent west waits"), "{message}");
        readiness.record_role(LeaderRole::Candidate);
        assert_eq!(readiness.not_ready_reasons(INTERVAL), [NotReadyReason::Poll], "from now on it has to poll");
    }

    #[test]
    fn an_agent_that_may_not_write_its_lease_is_not_ready_and_says_why() {
        let readiness = Readiness::default();
        readiness.record_identity();
        readiness.record_ping(true);
        readiness.record_poll();
        readiness.record_role(LeaderRole::WithoutLease("write Lease a: 403 exceeded quota".to_owned()));
        let reasons = readiness.not_ready_reasons(INTERVAL);
        let messages: Vec<String> = reasons.iter().map(NotReadyReason::message).collect();
        assert_eq!(messages, ["nothing is written without the Lease: write Lease a: 403 exceeded quota"]);
        readiness.record_role(LeaderRole::Candidate);
        assert_eq!(readiness.not_ready_reasons(INTERVAL), []);
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
