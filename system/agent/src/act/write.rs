//! Writes: namespaces and definitions, then the rest once all of it was found valid, stage by stage.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use sindri_model::ObjectKey;

use super::namespaces::NewNamespace;
use super::patience::Patience;
use super::{ActError, Done, Executor, SERVED_WAIT_MAX};
use crate::at_once::at_once;
use crate::cluster::{Applied, ClusterError, Mode, Resource};
use crate::plan::{Plan, Stage, Write};

/// The identities of objects that have to be deleted before they can be written.
type ToReplace = BTreeMap<ObjectKey, String>;
/// What the server said of objects before any of them was written.
pub(super) type Validated = Result<ToReplace, ActError>;

impl Executor<'_> {
    pub(super) async fn write(
        &self,
        plan: &Plan,
        validated: Option<Validated>,
        done: &mut Done,
        made: &mut Vec<NewNamespace>,
    ) -> Result<(), ActError> {
        let (first, rest) = plan.before_and_after_validation();
        for stage in first.chunk_by(|one, other| one.stage == other.stage) {
            let written = self.apply_all(stage, &ToReplace::new(), done).await;
            // Made by this very call: if the answer of an earlier try was lost, nobody can tell, and it is kept.
            made.extend(stage.iter().filter_map(|write| NewNamespace::of(write, done)));
            written?;
        }
        for definition in first.iter().filter(|write| write.stage == Stage::Definitions) {
            self.await_served(definition).await?;
        }
        let to_replace = match validated {
            Some(validated) => validated?,
            None => self.validate(rest).await?,
        };
        for stage in rest.chunk_by(|one, other| one.stage == other.stage) {
            self.apply_all(stage, &to_replace, done).await?;
        }
        Ok(())
    }

    /// Applies objects of one stage, several at once. After a failure no further one is begun, and those under way end.
    async fn apply_all<'a>(
        &self,
        writes: &'a [Write],
        to_replace: &ToReplace,
        done: &mut Done,
    ) -> Result<(), ActError> {
        let has_failed = AtomicBool::new(false);
        let mut failed: Option<ActError> = None;
        let apply = |write: &'a Write| {
            let has_failed = &has_failed;
            async move {
                if has_failed.load(Ordering::Relaxed) {
                    return None;
                }
                let applied = self.apply(write, to_replace).await;
                has_failed.fetch_or(applied.is_err(), Ordering::Relaxed);
                Some((&write.object.key, applied))
            }
        };
        for ended in at_once(writes.iter().collect(), apply).await {
            match (ended, &mut failed) {
                (None, _) => {}
                (Some((key, Ok(applied))), _) => {
                    done.applied.insert(key.clone(), applied);
                }
                (Some((_, Err(ActError::Write(more)))), Some(ActError::Write(errors))) => errors.extend(more),
                (Some((_, Err(_))), Some(_)) => {}
                (Some((_, Err(error))), None) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn apply(&self, write: &Write, to_replace: &ToReplace) -> Result<Applied, ActError> {
        let object = &write.object;
        if let Some(uid) = to_replace.get(&object.key) {
            self.make_room(write, uid).await?;
        }
        let applied = self.cluster.apply(&object.resource, &object.key, &object.manifest, Mode::Real).await?;
        tracing::info!("applied {}", object.key);
        Ok(applied)
    }

    /// Asks the server about every object before the first is written, and collects every no.
    pub(super) async fn validate<'a>(&self, writes: &'a [Write]) -> Validated {
        let check = |write: &'a Write| async move {
            let object = &write.object;
            (write, self.cluster.apply_unseen(&object.resource, &object.key, &object.manifest, Mode::DryRun).await)
        };
        let checked = at_once(writes.iter().collect(), check).await;
        let (mut invalid, mut to_replace) = (Vec::new(), ToReplace::new());
        for (write, checked) in checked {
            match checked {
                Ok(()) => {}
                // A server that does not answer says nothing about the objects.
                Err(error) if error.is_no_answer() => return Err(error.into()),
                Err(error) if error.is_invalid() && write.object.replace => {
                    match self.replaceable(write, error).await {
                        Ok(uid) => {
                            to_replace.insert(write.object.key.clone(), uid);
                        }
                        Err(error) => invalid.push(error),
                    }
                }
                Err(error) => invalid.push(error),
            }
        }
        if invalid.is_empty() { Ok(to_replace) } else { Err(ActError::Invalid(invalid)) }
    }

    /// Finds out which objects an apply would change, and changes none.
    pub(super) async fn compare(&self, checks: &[Write], done: &mut Done) -> Result<(), ActError> {
        for check in checks {
            let object = &check.object;
            let before = self.cluster.metadata(&object.resource, &object.key).await?;
            let after = self.cluster.apply(&object.resource, &object.key, &object.manifest, Mode::DryRun).await?;
            if before.is_some_and(|before| before.uid == after.live.uid && before.ours == after.live.ours) {
                done.applied.insert(object.key.clone(), after);
            } else {
                done.drifted.push(object.key.clone());
            }
        }
        Ok(())
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
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
