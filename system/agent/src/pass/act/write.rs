//! Writes: namespaces and definitions, then the rest once all of it was found valid, stage by stage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::backoff::Patience;
use super::executor::{ActError, Done, Executor, SERVED_WAIT_MAX};
use super::namespaces::NewNamespace;
use crate::cluster::concurrency::at_once;
use crate::cluster::{Applied, ClusterError, Mode, Patch, Resource};
use crate::pass::plan::{Plan, Stage, Write};

/// So many objects of a stage are named in a line of the log.
const NAMED_MAX: usize = 20;

/// One object that is about to be written.
pub(super) struct Ready<'a> {
    write: &'a Write,
    patch: Patch<'a>,
    /// The identity of an object that has to be deleted before.
    in_place_of: Option<String>,
}

impl<'a> Ready<'a> {
    fn new(write: &'a Write) -> Self {
        Self { write, patch: write.object.patch(), in_place_of: None }
    }
}

/// What the server said of objects before any of them was written.
pub(super) type Validated<'a> = Result<Vec<Ready<'a>>, ActError>;

impl Executor<'_> {
    pub(super) async fn write<'a>(
        &self,
        plan: &'a Plan,
        validated: Option<Validated<'a>>,
        done: &mut Done,
        made: &mut Vec<NewNamespace>,
    ) -> Result<(), ActError> {
        let (first, rest) = plan.before_and_after_validation();
        for stage in first.chunk_by(|one, other| one.stage == other.stage) {
            let written = self.apply_all(stage.iter().map(Ready::new).collect(), done).await;
            // Made by this very call: if the answer of an earlier try was lost, nobody can tell, and it is kept.
            made.extend(stage.iter().filter_map(|write| NewNamespace::of(write, done)));
            written?;
        }
        for definition in first.iter().filter(|write| write.stage == Stage::Definitions) {
            self.await_served(definition).await?;
        }
        let validated = match validated {
            Some(validated) => validated?,
            None => self.validate(rest).await?,
        };
        let mut validated = validated.into_iter().peekable();
        while let Some(first) = validated.next() {
            let stage = first.write.stage;
            let mut together = vec![first];
            while let Some(next) = validated.next_if(|ready| ready.write.stage == stage) {
                together.push(next);
            }
            self.apply_all(together, done).await?;
        }
        Ok(())
    }

    /// Applies objects of one stage, several at once. After a failure no further one is begun, and those under way end.
    async fn apply_all<'a>(&self, together: Vec<Ready<'a>>, done: &mut Done) -> Result<(), ActError> {
        let has_failed = AtomicBool::new(false);
        let mut failed: Option<ActError> = None;
        // While others are under way: afterwards somebody would wait for it.
        let applied = Mutex::new(&mut done.applied);
        let apply = |ready: Ready<'a>| {
            let (has_failed, applied) = (&has_failed, &applied);
            async move {
                if has_failed.load(Ordering::Relaxed) {
                    return None;
                }
                let key = &ready.write.object.key;
                let ended = self.apply(&ready).await.map(|one| {
                    // An insertion cannot be left half done.
                    applied.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), one);
                });
                has_failed.fetch_or(ended.is_err(), Ordering::Relaxed);
                Some((key, ended))
            }
        };
        let mut written = Vec::with_capacity(together.len());
        for ended in at_once(together, apply).await {
            match (ended, &mut failed) {
                (None, _) => {}
                (Some((key, Ok(()))), _) => written.push(key),
                (Some((_, Err(ActError::Write(more)))), Some(ActError::Write(errors))) => errors.extend(more),
                (Some((_, Err(_))), Some(_)) => {}
                (Some((_, Err(error))), None) => failed = Some(error),
            }
        }
        if !written.is_empty() {
            tracing::info!("applied {}", some_of(&written));
        }
        failed.map_or(Ok(()), Err)
    }

    async fn apply(&self, ready: &Ready<'_>) -> Result<Applied, ActError> {
        if let Some(uid) = &ready.in_place_of {
            self.make_room(ready.write, uid).await?;
        }
        let applied = self.cluster.apply(&ready.patch, Mode::Real).await?;
        tracing::debug!("applied {}", ready.write.object.key);
        Ok(applied)
    }

    /// Asks the server about every object before the first is written, and collects every no.
    pub(super) async fn validate<'a>(&self, writes: &'a [Write]) -> Validated<'a> {
        let check = |write: &'a Write| async move {
            let ready = Ready::new(write);
            let checked = self.cluster.apply_unseen(&ready.patch, Mode::DryRun).await;
            (ready, checked)
        };
        let (mut invalid, mut validated) = (Vec::new(), Vec::with_capacity(writes.len()));
        for (mut ready, checked) in at_once(writes.iter().collect(), check).await {
            let in_place_of = match checked {
                Ok(()) => Ok(None),
                // A server that does not answer says nothing about the objects.
                Err(error) if error.is_no_answer() => return Err(error.into()),
                Err(error) if error.is_invalid() && ready.write.object.replace => {
                    self.replaceable(ready.write, error).await.map(Some)
                }
                Err(error) => Err(error),
            };
            match in_place_of {
                Ok(in_place_of) => {
                    ready.in_place_of = in_place_of;
                    validated.push(ready);
                }
                Err(error) => invalid.push(error),
            }
        }
        if invalid.is_empty() { Ok(validated) } else { Err(ActError::Invalid(invalid)) }
    }

    /// Finds out which objects an apply would change, and changes none.
    pub(super) async fn compare(&self, checks: &[Write], done: &mut Done) -> Result<(), ActError> {
        for check in checks {
            let object = &check.object;
            let before = self.cluster.metadata(&object.resource, &object.key).await?;
            let after = self.cluster.apply(&Ready::new(check).patch, Mode::DryRun).await?;
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

/// The first of many, and how many more there are: a pass may write thousands.
fn some_of<K: ToString>(keys: &[K]) -> String {
    let named = keys.iter().take(NAMED_MAX).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match keys.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use sindri_model::ObjectKey;

    use super::*;

    #[test]
    fn a_line_names_the_first_objects_and_counts_the_others() {
        let name = |number: usize| ObjectKey {
            group: String::new(),
            kind: "A".into(),
            namespace: None,
            name: number.to_string(),
        };
        let keys: Vec<ObjectKey> = (0..NAMED_MAX + 2).map(name).collect();
        let some = |count: usize| some_of(&keys.iter().take(count).collect::<Vec<_>>());
        assert_eq!(some(2), "A 0, A 1");
        assert!(some(NAMED_MAX).ends_with(", A 19"));
        assert!(some(NAMED_MAX + 2).ends_with(", A 19 and 2 more"));
    }
}
