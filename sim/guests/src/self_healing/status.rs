//! The status of an agent: its phase, the number of ready pods, and conditions.
//!
//! A repair is no setback: an agent that was ready stays so while children and pods are replaced, for a limited time. The
//! number of ready pods is always the observed one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::variant::Variant;
use crate::object::text;

/// Type of the condition that the agent is valid and its children have their desired state.
pub const ACCEPTED: &str = "Accepted";
/// Type of the condition that the agent runs.
pub const READY: &str = "Ready";
/// Longest time for which an agent without all its pods is still called ready.
pub const REPAIR_MAX: Duration = Duration::from_secs(120);

/// State of an agent as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has never had all its pods.
    Pending,
    /// It has all its pods, or had them a short time ago.
    Ready,
    /// It has been without some of its pods for too long.
    Degraded,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Pending, Phase::Ready, Phase::Degraded];

    /// Returns its name in the status.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Ready => "Ready",
            Phase::Degraded => "Degraded",
        }
    }

    /// Returns the phase in the status of an agent; `Pending` if there is none.
    fn read(agent: &Value) -> Self {
        let known = text(agent, "/status/phase");
        Phase::ALL.into_iter().find(|phase| phase.name() == known).unwrap_or(Phase::Pending)
    }
}

/// Returns a condition of an agent.
pub fn condition<'a>(agent: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = agent.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// Observations from which a status is built.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The agent, with its previous status.
    pub agent: &'a Value,
    /// Its Deployment, if it exists.
    pub deployment: Option<&'a Value>,
    /// Reason why the children do not have their desired state.
    pub rejection: Option<&'a str>,
    /// Current time.
    pub now: Timestamp,
}

impl Report<'_> {
    /// Builds the status, and returns it with the time until it changes by itself.
    pub fn build(&self, variant: Variant) -> (Value, Option<Duration>) {
        let since = self.repairing_since(variant);
        let remaining = since.map(|since| self.remaining_repair(since));
        let phase = self.next_phase(remaining, variant);
        let mut status = json!({
            "observedGeneration": self.agent["metadata"]["generation"],
            "phase": phase.name(),
            "replicas": self.replicas(),
            "readyReplicas": self.ready_pods(),
            "conditions": [self.accepted(), self.ready(phase)],
        });
        if let Some(since) = since {
            status["repairingSince"] = json!(since.to_string());
        }
        if variant == Variant::WritesStatusAlways {
            status["lastReconciled"] = json!(self.now.to_string());
        }
        let changes_after = remaining.filter(|_| phase == Phase::Ready).map(SignedDuration::unsigned_abs);
        (status, changes_after)
    }

    fn next_phase(&self, remaining: Option<SignedDuration>, variant: Variant) -> Phase {
        if self.has_all_pods() {
            return Phase::Ready;
        }
        if variant == Variant::PendingAtEachRepair {
            return Phase::Pending;
        }
        match (Phase::read(self.agent), remaining) {
            (Phase::Pending, _) => Phase::Pending,
            (Phase::Ready, Some(remaining)) if remaining.is_positive() => Phase::Ready,
            (Phase::Ready, None) => Phase::Ready,
            (Phase::Ready | Phase::Degraded, _) => Phase::Degraded,
        }
    }

    /// Returns the time for which an agent is still called ready.
    fn remaining_repair(&self, since: Timestamp) -> SignedDuration {
        let limit = SignedDuration::try_from(REPAIR_MAX).unwrap_or(SignedDuration::MAX);
        limit.saturating_sub(self.now.duration_since(since)).max(SignedDuration::ZERO)
    }

    /// Returns the start of the repair of an agent that had all its pods before.
    fn repairing_since(&self, variant: Variant) -> Option<Timestamp> {
        let was_ready = Phase::read(self.agent) != Phase::Pending && variant != Variant::ReadyForever;
        let known = text(self.agent, "/status/repairingSince").parse::<Timestamp>();
        (was_ready && !self.has_all_pods()).then(|| known.unwrap_or(self.now))
    }

    fn replicas(&self) -> u64 {
        self.agent.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or_default()
    }

    fn count(&self, field: &str) -> u64 {
        let status = self.deployment.and_then(|deployment| deployment.get("status"));
        status.and_then(|status| status[field].as_u64()).unwrap_or_default()
    }

    fn ready_pods(&self) -> u64 {
        self.count("readyReplicas")
    }

    /// Returns true if every pod of the newest Deployment is ready.
    fn has_all_pods(&self) -> bool {
        let Some(deployment) = self.deployment else { return false };
        let is_observed =
            deployment.pointer("/status/observedGeneration") == deployment.pointer("/metadata/generation");
        is_observed && self.ready_pods() >= self.replicas() && self.count("updatedReplicas") >= self.replicas()
    }

    fn accepted(&self) -> Value {
        match self.rejection {
            None => self.build_condition(ACCEPTED, true, "AsDeclared", "every child has its desired state"),
            Some(reason) => self.build_condition(ACCEPTED, false, "Refused", reason),
        }
    }

    fn ready(&self, phase: Phase) -> Value {
        let reason = match phase {
            Phase::Pending => "Pending",
            Phase::Ready if self.has_all_pods() => "Running",
            Phase::Ready => "Repairing",
            Phase::Degraded => "Degraded",
        };
        let message = format!("{} of {} pods are ready", self.ready_pods(), self.replicas());
        self.build_condition(READY, phase == Phase::Ready, reason, &message)
    }

    /// Builds a condition. Its transition time changes only with its status.
    fn build_condition(&self, kind: &str, is_true: bool, reason: &str, message: &str) -> Value {
        let status = if is_true { "True" } else { "False" };
        let same = condition(self.agent, kind).filter(|previous| previous["status"] == status);
        let since = same.map_or_else(|| json!(self.now.to_string()), |same| same["lastTransitionTime"].clone());
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the status of an agent with three pods, some of them ready, at a second.
    fn next(status: &Value, ready: u64, second: i64) -> (Value, Option<Duration>) {
        let agent = json!({"metadata": {"generation": 1}, "spec": {"replicas": 3}, "status": status});
        let counts = json!({"observedGeneration": 1, "readyReplicas": ready, "updatedReplicas": 3});
        let deployment = json!({"metadata": {"generation": 1}, "status": counts});
        let now = Timestamp::from_second(second).unwrap();
        Report { agent: &agent, deployment: Some(&deployment), rejection: None, now }.build(Variant::Correct)
    }

    #[test]
    fn the_phase_is_pending_then_ready_through_a_short_repair_then_degraded() {
        let (pending, changes_after) = next(&Value::Null, 1, 0);
        assert_eq!((&pending["phase"], changes_after), (&json!("Pending"), None));
        let (ready, _) = next(&pending, 3, 10);
        assert_eq!((&ready["phase"], &ready["readyReplicas"]), (&json!("Ready"), &json!(3)));
        let (repairing, changes_after) = next(&ready, 2, 20);
        assert_eq!((&repairing["phase"], &repairing["readyReplicas"]), (&json!("Ready"), &json!(2)));
        assert_eq!(changes_after, Some(REPAIR_MAX));
        assert_eq!(repairing["conditions"][1]["lastTransitionTime"], ready["conditions"][1]["lastTransitionTime"]);
        let (later, changes_after) = next(&repairing, 1, 139);
        assert_eq!((&later["phase"], changes_after), (&json!("Ready"), Some(Duration::from_secs(1))));
        let (degraded, changes_after) = next(&later, 1, 140);
        assert_eq!((&degraded["phase"], changes_after), (&json!("Degraded"), None));
        let (still_degraded, _) = next(&degraded, 2, 141);
        assert_eq!(still_degraded["phase"], "Degraded");
        let (ready, _) = next(&still_degraded, 3, 150);
        assert_eq!((&ready["phase"], ready.get("repairingSince")), (&json!("Ready"), None));
    }
}
