//! Lease in the cluster that names the leader among the processes of an agent.
//!
//! Clocks are not compared: a process that waits takes the Lease when it has not seen it change for as long as it is valid.
//! The leader stops writing before that time if it cannot renew the Lease. While the cluster is unreachable no process
//! writes, and failures are still reported.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use sindri_model::{Clock, ObjectKey};
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::write_gate::WriteGate;
use crate::cluster::{ApiResource, Cluster, ClusterError, UNACKNOWLEDGED_MAX};
use crate::target::copy::has_copy;
use crate::telemetry::readiness::{LeaderRole, NotReadyReason, OtherAgent, Readiness};

/// Annotation of the Lease: name of the agent whose process holds it.
const AGENT_ANNOTATION: &str = "sindri.dev/agent";
/// Name of the Lease.
pub const LEASE_NAME: &str = "sindri-agent";
/// Seconds without a renewal after which another process may take the Lease.
const VALID_SECONDS: i32 = 30;
const VALID: Duration = Duration::from_secs(VALID_SECONDS as u64);
/// Interval at which the leader renews the Lease and other processes read it.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// Time without a renewal after which the leader stops writing: earlier than another process may begin, by more than
/// [`UNACKNOWLEDGED_MAX`].
const WRITE_MAX: Duration = Duration::from_secs(20);
const _: () = assert!(WRITE_MAX.as_secs() + UNACKNOWLEDGED_MAX.as_secs() < VALID.as_secs());
/// Time limit of one attempt.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

/// Holder of the Lease, or candidate.
pub struct LeaderLease<'a> {
    /// Client of the cluster, neither gated nor cancelled.
    pub cluster: &'a Cluster,
    /// Clock for the times in the Lease, which are informative only.
    pub clock: &'a Clock,
    /// Name of this process.
    pub process: ProcessName<'a>,
    /// Readiness, which depends on who holds the Lease.
    pub readiness: &'a Readiness,
}

/// Name of a process of an agent.
#[derive(Clone, Copy)]
pub struct ProcessName<'a> {
    /// Name of the agent.
    pub agent: &'a str,
    /// Identity in the Lease. A restarted process of the same identity continues at once.
    pub identity: &'a str,
}

/// Result of an attempt to hold the Lease.
enum Attempt {
    /// This process holds it.
    Held(Box<LeaseSpec>),
    /// Another process holds it.
    HeldByOther(Box<Lease>),
    /// It does not exist, and another process may still act: that one creates it again, unless it has ended.
    Absent,
}

/// Earlier observations of a process that reads the Lease again.
#[derive(Clone, Copy)]
struct EarlierObservations<'a> {
    /// The Lease of another process, and true if it has not changed for as long as it is valid.
    other: Option<(&'a LeaseSpec, bool)>,
    /// Time for which it has been absent.
    absent_for: Duration,
    /// True if this process may write.
    is_leading: bool,
    /// True if this process has not read or held it yet.
    is_new: bool,
    /// Tenures that this process has begun, or has tried to begin.
    own: &'a [Tenure],
}

/// Time and number of an acquisition of the Lease.
type Tenure = (Option<i64>, Option<i32>);

impl LeaderLease<'_> {
    /// Takes the Lease when it is free, renews it, and keeps the write gate up to date. Never ends.
    pub async fn run(&self, gate: &WriteGate) -> Infallible {
        let mut seen: Option<(LeaseSpec, Instant)> = None;
        let mut held: Option<Tenure> = None;
        let mut own: Vec<Tenure> = Vec::new();
        let mut absent_since: Option<Instant> = None;
        loop {
            let started = Instant::now();
            let known = EarlierObservations {
                other: seen.as_ref().map(|(spec, since)| (spec, since.elapsed() >= VALID)),
                absent_for: absent_since.map_or(Duration::ZERO, |since| since.elapsed()),
                is_leading: gate.is_open(),
                is_new: seen.is_none() && held.is_none(),
                own: &own,
            };
            let begun = Mutex::new(None);
            let attempt = timeout(ATTEMPT_MAX, self.attempt(known, &begun)).await;
            // Also if no response arrived: the Lease may have been written.
            own = held.into_iter().chain(begun.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
            if matches!(attempt, Ok(Ok(Attempt::Held(_) | Attempt::HeldByOther(_)))) {
                absent_since = None;
            }
            match attempt {
                Ok(Ok(Attempt::Held(spec))) => {
                    seen = None;
                    let tenure = tenure_of(&spec);
                    if held.as_ref().is_some_and(|held| *held != tenure) {
                        tracing::info!("the Lease was lost meanwhile, and is held again");
                        gate.begin_term();
                    }
                    held = Some(tenure);
                    self.readiness.record_role(LeaderRole::Candidate);
                    gate.open_until(started + WRITE_MAX);
                }
                Ok(Ok(Attempt::HeldByOther(lease))) => {
                    let spec = spec_of(&lease);
                    if !gate.has_other_leader() {
                        tracing::info!("waiting for the Lease, which {} holds", holder(&spec));
                        gate.close_for_other_leader();
                    }
                    self.record_role_beside(&lease);
                    if seen.as_ref().is_none_or(|(known, _)| *known != spec) {
                        seen = Some((spec, Instant::now()));
                    }
                }
                Ok(Ok(Attempt::Absent)) => {
                    tracing::info!("there is no Lease; another process may have held it, and may still act");
                    absent_since.get_or_insert(started);
                }
                Ok(Err(error)) => {
                    // The text of an outage differs from attempt to attempt, and a failure with another text is reported again.
                    gate.record_refusal(error.proves_rejection().then(|| error.to_string().into()));
                    self.record_error(gate, &error.to_string());
                }
                Err(_) => {
                    gate.record_refusal(None);
                    self.record_error(gate, &format!("the Lease: no response within {} s", ATTEMPT_MAX.as_secs()));
                }
            }
            sleep(RENEW_INTERVAL).await;
        }
    }

    /// Records that the Lease could not be read or written. Until it can be, nothing is written.
    fn record_error(&self, gate: &WriteGate, reason: &str) {
        if gate.is_open() || gate.has_other_leader() {
            tracing::info!("{reason}");
        } else {
            tracing::warn!("nothing is written without the Lease: {reason}");
            self.readiness.record_role(LeaderRole::WithoutLease(reason.to_owned()));
        }
    }

    /// Records that another process holds the Lease. One of another agent is a mistake, which is repeated in the log.
    fn record_role_beside(&self, lease: &Lease) {
        let annotations = lease.metadata.annotations.as_ref();
        // Earlier versions of the agent did not write the annotation.
        let leader_name = annotations.and_then(|annotations| annotations.get(AGENT_ANNOTATION));
        let Some(leader_name) = leader_name.filter(|name| *name != self.process.agent) else {
            return self.readiness.record_role(LeaderRole::Standby);
        };
        let other = OtherAgent { own_name: self.process.agent.to_owned(), leader_name: leader_name.clone() };
        tracing::error!("{}", NotReadyReason::OtherAgent(other.clone()).message());
        self.readiness.record_role(LeaderRole::Excluded(other));
    }

    /// Releases the Lease, so that the next process need not wait. If that fails, the Lease expires.
    pub async fn release(&self) {
        let _ = timeout(ATTEMPT_MAX, self.release_if_held()).await;
    }

    async fn release_if_held(&self) -> Result<(), ClusterError> {
        if let Some(lease) = self.read().await?
            && holder(&spec_of(&lease)) == self.process.identity
        {
            self.write(&lease, "", &Mutex::default()).await?;
        }
        Ok(())
    }

    /// Takes the Lease if it is free, held by this process, or still the `known` one of another process and expired: the
    /// leader may have renewed it since it was last read.
    async fn attempt(
        &self,
        known: EarlierObservations<'_>,
        begun: &Mutex<Option<Tenure>>,
    ) -> Result<Attempt, ClusterError> {
        let expired = known.other.filter(|(_, is_expired)| *is_expired).map(|(spec, _)| spec);
        let Some(lease) = self.read().await? else {
            if !self.may_create(known).await? {
                return Ok(Attempt::Absent);
            }
            self.cluster.ensure_agent_namespace().await?;
            return self.write(&Lease::default(), self.process.identity, begun).await;
        };
        let spec = spec_of(&lease);
        let holder = holder(&spec);
        // After a restore of etcd it may name this process although another one is the leader now.
        let is_own = holder == self.process.identity && (known.is_new || known.own.contains(&tenure_of(&spec)));
        if is_own || holder.is_empty() || expired == Some(&spec) {
            return self.write(&lease, self.process.identity, begun).await;
        }
        Ok(Attempt::HeldByOther(Box::new(lease)))
    }

    /// Returns true if no other process can still act by a Lease that was deleted: this one is the leader, the last holder
    /// released it, it has been absent for as long as it would be valid, or no agent has ever worked in this cluster.
    async fn may_create(&self, known: EarlierObservations<'_>) -> Result<bool, ClusterError> {
        let is_released = known.other.is_some_and(|(spec, _)| holder(spec).is_empty());
        if known.is_leading || is_released || known.absent_for >= VALID {
            return Ok(true);
        }
        if !known.is_new {
            return Ok(false);
        }
        match has_copy(self.cluster).await {
            Ok(has_copy) => Ok(!has_copy),
            Err(error) => {
                tracing::info!("another process may have held the Lease: {error}");
                Ok(false)
            }
        }
    }

    async fn read(&self) -> Result<Option<Lease>, ClusterError> {
        self.cluster.get(&leases(), &self.key()).await
    }

    /// Writes the Lease with this holder, if it has not changed since it was read. `begun` becomes the tenure before it is sent.
    async fn write(
        &self,
        current: &Lease,
        holder_identity: &str,
        begun: &Mutex<Option<Tenure>>,
    ) -> Result<Attempt, ClusterError> {
        let (now, before) = (MicroTime(self.clock.now()), spec_of(current));
        let is_same_holder = before.holder_identity.as_deref() == Some(holder_identity);
        let acquire_time = if is_same_holder { before.acquire_time } else { Some(now.clone()) };
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(LEASE_NAME.to_owned()),
                namespace: Some(self.cluster.agent_namespace().to_owned()),
                resource_version: current.metadata.resource_version.clone(),
                annotations: Some(BTreeMap::from([(AGENT_ANNOTATION.to_owned(), self.process.agent.to_owned())])),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder_identity.to_owned()),
                lease_duration_seconds: Some(VALID_SECONDS),
                acquire_time,
                renew_time: Some(now),
                lease_transitions: Some(before.lease_transitions.unwrap_or_default() + i32::from(!is_same_holder)),
                ..LeaseSpec::default()
            }),
        };
        *begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(tenure_of(&spec_of(&lease)));
        match self.cluster.create_or_replace(&leases(), &self.key(), &lease).await {
            Ok(()) => Ok(Attempt::Held(Box::new(spec_of(&lease)))),
            Err(error) if error.is_conflict() => self.check_after_conflict(holder_identity, error).await,
            Err(error) => Err(error),
        }
    }

    /// Reads the Lease after a conflict. This process may hold it by an earlier attempt whose response was lost.
    async fn check_after_conflict(&self, identity: &str, conflict: ClusterError) -> Result<Attempt, ClusterError> {
        match self.read().await? {
            Some(lease) if holder(&spec_of(&lease)) == identity => Ok(Attempt::Held(Box::new(spec_of(&lease)))),
            Some(lease) => Ok(Attempt::HeldByOther(Box::new(lease))),
            None => Err(conflict),
        }
    }

    fn key(&self) -> ObjectKey {
        leases().object_key(Some(self.cluster.agent_namespace()), LEASE_NAME)
    }
}

/// Returns true if another process holds the Lease. It has not expired, by the clocks of both.
pub async fn is_held_by_other(cluster: &Cluster, clock: &Clock, identity: &str) -> Result<bool, ClusterError> {
    let key = leases().object_key(Some(cluster.agent_namespace()), LEASE_NAME);
    let Some(lease) = cluster.get(&leases(), &key).await? else { return Ok(false) };
    let spec = spec_of(&lease);
    let expired = spec.renew_time.as_ref().is_none_or(|renewed| renewed.0 + VALID < clock.now());
    Ok(!expired && !holder(&spec).is_empty() && holder(&spec) != identity)
}

fn leases() -> ApiResource {
    ApiResource::from_namespaced_type::<Lease>()
}

fn spec_of(lease: &Lease) -> LeaseSpec {
    lease.spec.clone().unwrap_or_default()
}

/// Returns the tenure of the holder. The API server stores microseconds.
fn tenure_of(spec: &LeaseSpec) -> Tenure {
    (spec.acquire_time.as_ref().map(|time| time.0.as_microsecond()), spec.lease_transitions)
}

fn holder(spec: &LeaseSpec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}
