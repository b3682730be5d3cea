//! A Lease in the cluster, so that of several processes of an agent only one acts.
//!
//! Nobody compares clocks: whoever waits takes the Lease when it has not seen it change for as long as it is valid. Whoever
//! holds it stops writing before that, if it cannot renew it. While the cluster cannot be asked, nobody writes, and what
//! fails is told all the same.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_model::{Clock, ObjectKey};
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::write_gate::Holding;
use crate::cluster::{Cluster, ClusterError, Resource};
use crate::pass::inventory;

/// The name of the Lease.
pub const LEASE_NAME: &str = "sindri-agent";
/// After so long without a renewal somebody else may take it.
const VALID: Duration = Duration::from_secs(30);
/// How often it is renewed, and looked at by those who wait.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// Without a renewal for so long its holder stops acting: earlier than anybody else may begin.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
/// One try.
const TRY_MAX: Duration = Duration::from_secs(5);

/// A claim to act.
pub struct Lease<'a> {
    /// The cluster that it is about.
    pub cluster: &'a Cluster,
    /// For the times that are written into it, which nobody compares.
    pub clock: &'a Clock,
    /// Who we are. A process that is started again under the same name goes on at once.
    pub holder: &'a str,
}

/// What a try came to.
enum Tried {
    Held,
    /// Somebody else has it; this is how it looks.
    Taken(Value),
}

impl Lease<'_> {
    /// Takes it when it may, renews it, and says how it stands. For ever.
    pub async fn keep(&self, holding: &Holding) -> Infallible {
        let mut seen: Option<(Value, Instant)> = None;
        loop {
            let asked = Instant::now();
            let may_take = seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= VALID);
            match timeout(TRY_MAX, self.attempt(may_take)).await {
                Ok(Ok(Tried::Held)) => {
                    seen = None;
                    holding.hold(asked + GIVE_UP_AFTER);
                }
                Ok(Ok(Tried::Taken(spec))) => {
                    if !holding.is_taken() {
                        tracing::info!("{} acts; waiting", spec["holderIdentity"].as_str().unwrap_or("somebody"));
                        holding.taken();
                    }
                    if seen.as_ref().is_none_or(|(known, _)| *known != spec) {
                        seen = Some((spec, Instant::now()));
                    }
                }
                Ok(Err(error)) => tracing::info!("{error}"),
                Err(_) => tracing::info!("the Lease: no answer within {} s", TRY_MAX.as_secs()),
            }
            sleep(RENEW_EVERY).await;
        }
    }

    /// Lets go of it, so that nobody has to wait. Whoever cannot is not in the way: it ends by itself.
    pub async fn release(&self) {
        let _ = timeout(TRY_MAX, self.write_if_ours()).await;
    }

    async fn write_if_ours(&self) -> Result<(), ClusterError> {
        if let Some(found) = self.cluster.read(&leases(), &self.key()).await?
            && found["spec"]["holderIdentity"] == self.holder
        {
            self.write(&found, "").await?;
        }
        Ok(())
    }

    async fn attempt(&self, may_take: bool) -> Result<Tried, ClusterError> {
        let Some(found) = self.cluster.read(&leases(), &self.key()).await? else {
            inventory::ensure_namespace(self.cluster).await?;
            return self.write(&Value::Null, self.holder).await;
        };
        let holder = found["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if holder == self.holder || holder.is_empty() || may_take {
            return self.write(&found, self.holder).await;
        }
        Ok(Tried::Taken(found["spec"].clone()))
    }

    /// Writes it as it was found, or not at all if somebody was faster.
    async fn write(&self, found: &Value, holder: &str) -> Result<Tried, ClusterError> {
        let now = self.clock.now();
        let is_same = found["spec"]["holderIdentity"] == holder;
        let transitions = found["spec"]["leaseTransitions"].as_i64().unwrap_or_default() + i64::from(!is_same);
        let acquired = if is_same { found["spec"]["acquireTime"].clone() } else { json!(micro_time(now)) };
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": LEASE_NAME, "namespace": self.key().namespace,
                "resourceVersion": found["metadata"]["resourceVersion"]},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": VALID.as_secs(), "acquireTime": acquired,
                "renewTime": micro_time(now), "leaseTransitions": transitions},
        });
        match self.cluster.put(&leases(), &self.key(), &lease).await {
            Ok(_) => Ok(Tried::Held),
            Err(error) if error.is_conflict() => self.who_was_faster(holder, error).await,
            Err(error) => Err(error),
        }
    }

    /// It may have been ourselves: an earlier try whose answer was lost.
    async fn who_was_faster(&self, holder: &str, conflict: ClusterError) -> Result<Tried, ClusterError> {
        match self.cluster.read(&leases(), &self.key()).await? {
            Some(now) if now["spec"]["holderIdentity"] == holder => Ok(Tried::Held),
            Some(now) => Ok(Tried::Taken(now["spec"].clone())),
            None => Err(conflict),
        }
    }

    fn key(&self) -> ObjectKey {
        ObjectKey {
            group: "coordination.k8s.io".into(),
            kind: "Lease".into(),
            namespace: Some(self.cluster.home().to_owned()),
            name: LEASE_NAME.into(),
        }
    }
}

fn micro_time(now: jiff::Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn leases() -> Resource {
    Resource {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        kind: "Lease".into(),
        plural: "leases".into(),
        namespaced: true,
    }
}
