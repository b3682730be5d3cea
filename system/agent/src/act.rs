//! The third step: carries a plan out. It has no opinion: what to write and in which order the plan says.
//!
//! It keeps the inventory ahead of the cluster, stops at the first failed write, goes on past a failed
//! delete, and takes back the namespaces that it made for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use sindri_model::{ObjectKey, StackId};
use thiserror::Error;

use crate::cluster::{Applied, Cluster, ClusterError, Deletion, LiveObject, Mode, Resource};
use crate::inventory::{self, Inventory, InventoryError};
use crate::plan::{Delete, Plan, Stage, Write};

/// How long a pass waits for a definition to be served.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a pass waits for deleted objects to be gone; the rest is left to the next pass.
const GONE_WAIT_MAX: Duration = Duration::from_secs(10);
/// The first pause of a wait; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// Why a pass did not carry out its plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ActError {
    /// The inventory could not be written; nothing was done after that.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// Objects that the server does not accept; none of the bundle was written, namespaces and definitions aside.
    #[error("{} of the objects are not valid: {}", .0.len(), list(.0))]
    Invalid(Vec<ClusterError>),
    /// One write failed; what was written before it stays.
    #[error(transparent)]
    Write(#[from] ClusterError),
    /// A definition was applied and its kind did not appear.
    #[error("{key} was applied and is still not served after {} s", SERVED_WAIT_MAX.as_secs())]
    NotServed {
        /// The definition.
        key: ObjectKey,
    },
    /// Some deletes failed; the others were carried out.
    #[error("{} objects could not be deleted: {}", .0.len(), list(.0))]
    Deletes(Vec<NotDeleted>),
}

/// Why an object is still there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotDeleted {
    /// The cluster did not do it.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Deleting it would delete objects of others.
    #[error("{key} is kept: it holds {held}, which is not of this stack")]
    HoldsOthers {
        /// The namespace or the definition.
        key: ObjectKey,
        /// One of the objects.
        held: ObjectKey,
    },
}

fn list<E: std::fmt::Display>(errors: &[E]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What a carried-out plan left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Each object that was written, as the server gave it back.
    pub applied: BTreeMap<ObjectKey, Applied>,
    /// Deleted, and not gone yet.
    pub leaving: Vec<ObjectKey>,
}

/// Carries out the plans of one stack.
pub struct Executor<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The stack.
    pub stack: StackId,
    /// Its inventory, kept as it is in the cluster.
    pub inventory: &'a mut Inventory,
}

/// A namespace that did not exist before this pass.
struct NewNamespace {
    key: ObjectKey,
    resource: Resource,
    uid: String,
}

impl Executor<'_> {
    /// Carries out a plan; on a failed write takes back the namespaces that it made.
    pub async fn carry_out(&mut self, plan: &Plan) -> Result<Done, ActError> {
        self.save(plan.ahead.clone()).await?;
        let mut done = Done { leaving: plan.leaving.clone(), ..Done::default() };
        let mut made = Vec::new();
        if let Err(error) = self.write(plan, &mut done, &mut made).await {
            self.take_back(&made, &done).await;
            // Identities that are known by now help the next pass; the error at hand says more than a second one.
            let _ = self.record_identities(&done).await;
            return Err(error);
        }
        self.record_identities(&done).await?;
        self.delete_all(&plan.deletes, &mut done).await?;
        Ok(done)
    }

    async fn save(&mut self, after: Inventory) -> Result<(), ActError> {
        inventory::save(self.cluster, self.stack, self.inventory, &after).await?;
        *self.inventory = after;
        Ok(())
    }

    async fn record_identities(&mut self, done: &Done) -> Result<(), ActError> {
        let mut after = self.inventory.clone();
        done.applied.iter().for_each(|(key, applied)| after.identify(key, &applied.uid));
        self.save(after).await
    }

    async fn write(&self, plan: &Plan, done: &mut Done, made: &mut Vec<NewNamespace>) -> Result<(), ActError> {
        let priority = plan.writes.iter().filter(|write| write.stage != Stage::Rest);
        for write in priority.clone() {
            let applied = self.apply(write).await?;
            // Made by this very call: if the answer of an earlier try was lost, nobody can tell, and it is kept.
            if write.stage == Stage::Namespaces && applied.created {
                let (key, resource) = (write.object.key.clone(), write.object.resource.clone());
                made.push(NewNamespace { key, resource, uid: applied.uid.clone() });
            }
            done.applied.insert(write.object.key.clone(), applied);
        }
        for definition in priority.filter(|write| write.stage == Stage::Definitions) {
            self.await_served(definition).await?;
        }
        let rest: Vec<&Write> = plan.writes.iter().filter(|write| write.stage == Stage::Rest).collect();
        self.validate(&rest).await?;
        for write in rest {
            let applied = self.apply(write).await?;
            done.applied.insert(write.object.key.clone(), applied);
        }
        Ok(())
    }

    async fn apply(&self, write: &Write) -> Result<Applied, ClusterError> {
        let object = &write.object;
        let applied = self.cluster.apply(&object.resource, &object.key, &object.manifest, Mode::Real).await?;
        tracing::info!("applied {}", object.key);
        Ok(applied)
    }

    /// Asks the server about every object before the first is written, and collects every no.
    async fn validate(&self, writes: &[&Write]) -> Result<(), ActError> {
        let mut invalid = Vec::new();
        for write in writes {
            let object = &write.object;
            let checked = self.cluster.apply(&object.resource, &object.key, &object.manifest, Mode::DryRun).await;
            match checked {
                Ok(_) => {}
                // A server that does not answer says nothing about the objects.
                Err(error) if error.retry().is_some() => return Err(error.into()),
                Err(error) => invalid.push(error),
            }
        }
        if invalid.is_empty() { Ok(()) } else { Err(ActError::Invalid(invalid)) }
    }

    /// Waits until a definition is established and each of its served versions is in discovery.
    async fn await_served(&self, definition: &Write) -> Result<(), ActError> {
        let object = &definition.object;
        let mut patience = Patience::new(SERVED_WAIT_MAX);
        loop {
            let live = self.cluster.read(&object.resource, &object.key).await?.unwrap_or_default();
            if is_established(&live) && self.is_discovered(&object.manifest).await? {
                return Ok(());
            }
            if !patience.pause().await {
                return Err(ActError::NotServed { key: object.key.clone() });
            }
        }
    }

    async fn is_discovered(&self, definition: &Value) -> Result<bool, ClusterError> {
        self.cluster.forget_group(definition["spec"]["group"].as_str().unwrap_or_default()).await;
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let name = version["name"].as_str().unwrap_or_default();
            let Some(kind) = Resource::defined_by(definition, name).filter(|_| version["served"] == true) else {
                continue;
            };
            if self.cluster.resource(&kind.group, &kind.version, &kind.kind).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn delete_all(&mut self, deletes: &[Delete], done: &mut Done) -> Result<(), ActError> {
        let mut failed: Vec<NotDeleted> = Vec::new();
        let mut after = self.inventory.clone();
        let mut accepted = Vec::new();
        let mut deletes = deletes.iter().peekable();
        while let Some(delete) = deletes.next() {
            let key = &delete.entry.key;
            if let Some(kept) = self.why_kept(delete).await {
                failed.push(kept);
            } else {
                match self.cluster.delete(&delete.entry.resource, key, &delete.uid).await {
                    Ok(Deletion::Accepted) => {
                        tracing::info!("deleted {key}");
                        accepted.push(delete);
                    }
                    // Gone, or someone else's: no longer ours either way.
                    Ok(Deletion::Absent | Deletion::Replaced) => after.remove(key),
                    Err(error) => failed.push(error.into()),
                }
            }
            let stage_ends =
                deletes.peek().is_none_or(|next| crate::plan::stage(&next.entry.key) != crate::plan::stage(key));
            if stage_ends {
                // Instances go before their definition does, or nobody could see them go.
                self.await_gone(&mut accepted, &mut after, &mut failed).await;
            }
        }
        done.leaving.extend(accepted.iter().map(|delete| delete.entry.key.clone()));
        self.save(after).await?;
        if failed.is_empty() { Ok(()) } else { Err(ActError::Deletes(failed)) }
    }

    /// Takes what is seen gone out of the inventory, and leaves the rest in `accepted`.
    async fn await_gone(&self, accepted: &mut Vec<&Delete>, after: &mut Inventory, failed: &mut Vec<NotDeleted>) {
        let mut patience = Patience::new(GONE_WAIT_MAX);
        loop {
            match self.still_there(accepted).await {
                Ok(there) => {
                    accepted.iter().filter(|delete| !there.contains(&delete.entry.key)).for_each(|delete| {
                        after.remove(&delete.entry.key);
                    });
                    accepted.retain(|delete| there.contains(&delete.entry.key));
                }
                Err(error) => return failed.push(error.into()),
            }
            if accepted.is_empty() || !patience.pause().await {
                return;
            }
        }
    }

    async fn still_there(&self, deletes: &[&Delete]) -> Result<BTreeSet<ObjectKey>, ClusterError> {
        let mut there = BTreeSet::new();
        for delete in deletes {
            let live = self.cluster.metadata(&delete.entry.resource, &delete.entry.key).await?;
            if live.is_some_and(|live| live.uid == delete.uid) {
                there.insert(delete.entry.key.clone());
            }
        }
        Ok(there)
    }

    /// Why an object must not be deleted: a namespace or a definition takes everything in it along.
    async fn why_kept(&self, delete: &Delete) -> Option<NotDeleted> {
        let key = &delete.entry.key;
        let held = match crate::plan::stage(key) {
            Stage::Rest => return None,
            Stage::Namespaces => self.stranger_in_namespace(&key.name, &BTreeSet::new()).await,
            Stage::Definitions => self.stranger_of_definition(delete).await,
        };
        match held {
            Ok(held) => held.map(|held| NotDeleted::HoldsOthers { key: key.clone(), held }),
            Err(error) => Some(error.into()),
        }
    }

    async fn stranger_of_definition(&self, delete: &Delete) -> Result<Option<ObjectKey>, ClusterError> {
        let definition = self.cluster.read(&delete.entry.resource, &delete.entry.key).await?.unwrap_or_default();
        let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let served = versions.iter().find(|version| version["served"] == true);
        let version = served.and_then(|version| version["name"].as_str()).unwrap_or_default();
        let Some(kind) = Resource::defined_by(&definition, version) else { return Ok(None) };
        let instances = self.cluster.instances(&kind).await?;
        Ok(instances.into_iter().find(|object| !self.is_known(object)).map(|object| object.key))
    }

    fn is_known(&self, object: &LiveObject) -> bool {
        self.inventory.get(&object.key).is_some()
    }

    /// Deletes the namespaces of a failed pass, unless something else moved in, or nobody can tell.
    async fn take_back(&self, made: &[NewNamespace], done: &Done) {
        for namespace in made {
            let ours: BTreeSet<&str> = done.applied.values().map(|applied| applied.uid.as_str()).collect();
            match self.stranger_in_namespace(&namespace.key.name, &ours).await {
                Ok(None) => {}
                Ok(Some(held)) => {
                    tracing::info!("kept {}, which holds {held}", namespace.key);
                    continue;
                }
                Err(error) => {
                    tracing::info!("kept {}, whose content cannot be read: {error}", namespace.key);
                    continue;
                }
            }
            match self.cluster.delete(&namespace.resource, &namespace.key, &namespace.uid).await {
                Ok(_) => tracing::info!("took back {}, which was made in this pass", namespace.key),
                Err(error) => tracing::warn!("could not take back {}: {error}", namespace.key),
            }
        }
    }

    /// An object in a namespace that neither this stack nor the cluster itself put there. What another object owns
    /// comes and goes with its owner.
    async fn stranger_in_namespace(
        &self,
        namespace: &str,
        ours: &BTreeSet<&str>,
    ) -> Result<Option<ObjectKey>, ClusterError> {
        for resource in self.cluster.listable_resources().await?.iter().filter(|resource| resource.namespaced) {
            for object in self.cluster.in_namespace(resource, namespace).await? {
                let known = ours.contains(object.uid.as_str()) || self.is_known(&object);
                if !known && !object.owned && !is_made_by_the_cluster(&object.key) {
                    return Ok(Some(object.key));
                }
            }
        }
        Ok(None)
    }
}

/// What every namespace gets from the cluster itself.
fn is_made_by_the_cluster(key: &ObjectKey) -> bool {
    let of_core = key.group.is_empty();
    key.kind == "Event"
        || (of_core && key.kind == "ServiceAccount" && key.name == "default")
        || (of_core && key.kind == "ConfigMap" && key.name == "kube-root-ca.crt")
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Asking again and again, ever more slowly, until the time is over.
struct Patience {
    left: Duration,
    pause: Duration,
}

impl Patience {
    fn new(longest: Duration) -> Self {
        Self { left: longest, pause: PAUSE_FIRST }
    }

    /// Pauses; false when the time is over.
    async fn pause(&mut self) -> bool {
        let pause = self.pause.min(self.left);
        tokio::time::sleep(pause).await;
        self.left -= pause;
        self.pause *= 2;
        !pause.is_zero()
    }
}
