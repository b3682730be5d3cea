//! Writes: namespaces and CRDs first, then the other objects stage by stage, once all of them are validated. An object that
//! the server rejects because an object of an earlier stage is missing, or whose webhook cannot be called, is validated again
//! when the earlier stages were written. One about which nothing is known delays only itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sindri_model::{ObjectKey, StackId};

use super::backoff::Backoff;
use super::isolate::isolate;
use super::namespaces::CreatedNamespace;
use super::once::OnceRecorder;
use super::recheck::Recheck;
use super::replace::{check_replaceable, delete_for_replacement};
use super::result::{ActError, ActResult, SERVED_WAIT_MAX};
use crate::cluster::concurrency::run_concurrently;
use crate::cluster::{ApiResource, AppliedObject, ApplyMode, ApplyPatch, Cluster, ClusterError, LiveObject};
use crate::pass::ignored_values::read_ignored_fields;
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Plan, Write};
use crate::pass::stage::Stage;
use crate::target::instruction::Instruction;

/// Number of times that an object is read again because it changed between the read and the apply.
const CONFLICTS_MAX: u32 = 5;
/// Time that a pass waits for controllers to process objects that it has written, on which others depend.
const PROCESSED_WAIT_MAX: Duration = Duration::from_secs(3);
/// Number of objects that are named in one log line.
const NAMED_MAX: usize = 20;

/// Serialized object that is about to be written.
pub struct PreparedWrite<'a> {
    write: &'a Write,
    patch: ApplyPatch<'a>,
    /// UID of the object that must be deleted before.
    replaced_uid: Option<String>,
    /// True if it must be validated again before it is written.
    is_deferred: bool,
}

impl<'a> PreparedWrite<'a> {
    fn new(write: &'a Write) -> Self {
        Self { write, patch: write.object.to_patch(write.uid.as_deref()), replaced_uid: None, is_deferred: false }
    }
}

/// Result of the validation of objects before any of them is written.
pub type ValidationResult<'a> = Result<ValidatedWrites<'a>, ActError>;

/// Objects after their validation.
pub struct ValidatedWrites<'a> {
    writes: Vec<PreparedWrite<'a>>,
    /// Failures of objects that this pass does not write.
    postponed: Vec<ClusterError>,
}

/// Writes objects of a stack to a cluster.
#[derive(Clone, Copy)]
pub struct Writer<'c> {
    /// Client of the cluster.
    pub cluster: &'c Cluster,
    /// Id of the stack.
    pub stack: StackId,
    /// Inventory of the stack.
    pub inventory: &'c Inventory,
    /// Instruction that the pass executes.
    pub instruction: &'c Instruction<'c>,
}

impl Writer<'_> {
    /// Applies the writes of a plan; validates them first unless `validation` has the result. Adds the namespaces that were
    /// created, also on failure.
    pub async fn write_all<'a>(
        &self,
        plan: &'a Plan,
        validation: Option<ValidationResult<'a>>,
        recorder: &OnceRecorder<'_>,
        result: &mut ActResult,
        created: &mut Vec<CreatedNamespace>,
    ) -> Result<(), ActError> {
        let (first, rest) = plan.split_at_validation();
        for stage in first.chunk_by(|one, other| one.stage == other.stage) {
            self.check_not_interrupted()?;
            let written = self.apply_all(stage.iter().map(PreparedWrite::new).collect(), recorder, result).await;
            // Only namespaces that this request created: after a lost response of an earlier attempt it is unknown, and
            // the namespace is kept.
            created.extend(stage.iter().filter_map(|write| CreatedNamespace::from_write(write, result)));
            written?;
        }
        for crd in first.iter().filter(|write| write.stage == Stage::Crds) {
            self.wait_until_served(crd).await?;
        }
        let validated = match validation {
            Some(validation) => validation?,
            None => self.validate_all(rest).await?,
        };
        let ValidatedWrites { writes, mut postponed } = validated;
        let mut writes = writes.into_iter().peekable();
        while let Some(first) = writes.next() {
            let stage = first.write.stage;
            let mut of_stage = vec![first];
            while let Some(next) = writes.next_if(|prepared| prepared.write.stage == stage) {
                of_stage.push(next);
            }
            self.check_not_interrupted()?;
            let mut valid = match self.validate_deferred(of_stage, &mut postponed).await {
                Ok(valid) => valid,
                Err(error) => return Err(error.with_postponed(postponed)),
            };
            if !postponed.is_empty() {
                // A Job that is applied once, and an object that would be deleted and created again, may need what is missing.
                valid.retain(|prepared| prepared.replaced_uid.is_none() && prepared.write.created_once().is_none());
            }
            if let Err(error) = self.apply_all(valid, recorder, result).await {
                return Err(error.with_postponed(postponed));
            }
        }
        if postponed.is_empty() { Ok(()) } else { Err(ActError::Postponed(postponed)) }
    }

    /// Ends the writes between two stages if there is a newer revision, or if the agent must not act any more.
    fn check_not_interrupted(&self) -> Result<(), ActError> {
        if self.cluster.has_ended_retries() { Err(ActError::Interrupted) } else { Ok(()) }
    }

    /// Validates the deferred ones of the writes of one stage, after the earlier stages were written. Returns those that can be
    /// written.
    async fn validate_deferred<'a>(
        &self,
        writes: Vec<PreparedWrite<'a>>,
        postponed: &mut Vec<ClusterError>,
    ) -> Result<Vec<PreparedWrite<'a>>, ActError> {
        let validate = |prepared: PreparedWrite<'a>| async move {
            let validated = if prepared.is_deferred { self.validate_patiently(&prepared).await } else { Ok(None) };
            (prepared, validated)
        };
        // An object of an earlier stage is missing, and may be the reason of a rejection.
        let lacks_objects = !postponed.is_empty();
        let (mut valid, mut invalid) = (Vec::with_capacity(writes.len()), Vec::new());
        for (mut prepared, validated) in run_concurrently(writes, validate).await {
            match validated {
                Ok(_) if !prepared.is_deferred => valid.push(prepared),
                Ok(replaced_uid) => {
                    prepared.replaced_uid = replaced_uid;
                    valid.push(prepared);
                }
                Err(error) if ends_pass(&error) => return Err(error.into()),
                Err(error) if is_unrelated(&error) || lacks_objects => postponed.push(error),
                Err(error) => invalid.push(error),
            }
        }
        if invalid.is_empty() { Ok(valid) } else { Err(ActError::Invalid(invalid)) }
    }

    /// Validates a deferred object, again for a short time if it fails: controllers may still have to process an object of an
    /// earlier stage, such as a ResourceQuota or the backend of a webhook. The next pass goes on: later stages, which may repair the
    /// backend, must not wait for all retries.
    async fn validate_patiently(&self, prepared: &PreparedWrite<'_>) -> Result<Option<String>, ClusterError> {
        let cluster = &self.cluster.without_webhook_retries();
        let writer = Writer { cluster, ..*self };
        let mut backoff = Backoff::new(PROCESSED_WAIT_MAX);
        loop {
            match writer.validate(prepared).await {
                Err(error)
                    if (error.proves_rejection() || error.is_failed_webhook()) && !self.cluster.has_ended_retries() =>
                {
                    if !backoff.pause().await {
                        return Err(error);
                    }
                }
                validated => return validated,
            }
        }
    }

    /// Applies objects of one stage concurrently. After a failure no further apply begins; those in flight end normally.
    async fn apply_all<'a>(
        &self,
        writes: Vec<PreparedWrite<'a>>,
        recorder: &OnceRecorder<'_>,
        result: &mut ActResult,
    ) -> Result<(), ActError> {
        let has_failed = AtomicBool::new(false);
        let mut failed: Option<ActError> = None;
        // Results are inserted while other requests are in flight, not after all of them.
        let applied = Mutex::new(&mut result.applied);
        let apply = |prepared: PreparedWrite<'a>| {
            let (has_failed, applied) = (&has_failed, &applied);
            async move {
                if has_failed.load(Ordering::Relaxed) {
                    return None;
                }
                let key = &prepared.write.object.key;
                let ended = match isolate("apply", &prepared.write.object.key, self.apply(&prepared)).await {
                    Ok(object) => {
                        let recorded = recorder.record(&prepared.write.object, &object).await;
                        // An insertion does not panic half way, so a poisoned lock still holds a valid map.
                        applied.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), object);
                        recorded.map_err(ActError::from)
                    }
                    Err(error) => Err(error),
                };
                has_failed.fetch_or(ended.is_err(), Ordering::Relaxed);
                Some((key, ended))
            }
        };
        let mut written = Vec::with_capacity(writes.len());
        for ended in run_concurrently(writes, apply).await {
            match (ended, &mut failed) {
                (None, _) => {}
                (Some((key, Ok(()))), _) => written.push(key),
                (Some((_, Err(ActError::Write(more)))), Some(ActError::Write(errors))) => errors.extend(more),
                (Some((_, Err(_))), Some(_)) => {}
                (Some((_, Err(error))), None) => failed = Some(error),
            }
        }
        if !written.is_empty() {
            tracing::info!("applied {}", list_keys(&written));
        }
        failed.map_or(Ok(()), Err)
    }

    async fn apply(&self, prepared: &PreparedWrite<'_>) -> Result<AppliedObject, ActError> {
        let Some(uid) = &prepared.replaced_uid else {
            return match prepared.write.object.ignored.is_empty() {
                true => Ok(self.cluster.apply(&prepared.patch, ApplyMode::Persist).await?),
                false => self.apply_with_live_values(prepared.write).await,
            };
        };
        let recheck = Recheck { cluster: self.cluster, stack: self.stack, instruction: self.instruction };
        delete_for_replacement(recheck, self.inventory, prepared.write, uid).await?;
        // Once the old object is deleted the new one is created, even if a newer revision waits.
        let cluster = self.cluster.with_all_retries();
        Ok(cluster.apply(&prepared.write.object.to_patch(None), ApplyMode::Persist).await?)
    }

    /// Applies an object with the values that ignored fields have at this moment: earlier writes of the pass may have taken
    /// long. An attempt is valid for the object as it was read.
    async fn apply_with_live_values(&self, write: &Write) -> Result<AppliedObject, ActError> {
        let mut conflicts = 0;
        loop {
            let (object, live) = read_ignored_fields(self.cluster, &write.object).await?;
            let version = live.as_ref().and_then(|live| live["metadata"]["resourceVersion"].as_str());
            let patch = object.to_patch_of(write.uid.as_deref(), version);
            match self.cluster.apply(&patch, ApplyMode::Persist).await {
                Err(error) if error.is_conflict() && conflicts < CONFLICTS_MAX => conflicts += 1,
                applied => return Ok(applied?),
            }
        }
    }

    /// Validates every object by a dry run, and collects every rejection.
    pub async fn validate_all<'a>(&self, writes: &'a [Write]) -> ValidationResult<'a> {
        // The stack itself may repair the backend of a webhook.
        let cluster = &self.cluster.without_webhook_retries();
        let first = &Writer { cluster, ..*self };
        let validate = |write: &'a Write| async move {
            let prepared = PreparedWrite::new(write);
            let validated = first.validate(&prepared).await;
            (prepared, validated)
        };
        let (mut invalid, mut postponed) = (Vec::new(), Vec::new());
        let mut prepared_writes = Vec::with_capacity(writes.len());
        for (mut prepared, validated) in run_concurrently(writes.iter().collect(), validate).await {
            match validated {
                Ok(replaced_uid) => prepared.replaced_uid = replaced_uid,
                Err(error) if ends_pass(&error) => return Err(error.into()),
                Err(error)
                    if error.is_failed_webhook() || is_explained_by_earlier_write(&error, prepared.write, writes) =>
                {
                    prepared.is_deferred = true;
                }
                Err(error) if is_unrelated(&error) => {
                    postponed.push(error);
                    continue;
                }
                Err(error) => {
                    invalid.push(error);
                    continue;
                }
            }
            prepared_writes.push(prepared);
        }
        if !invalid.is_empty() {
            return Err(ActError::Invalid(invalid));
        }
        if prepared_writes.is_empty() && !postponed.is_empty() {
            postponed.truncate(1);
            return Err(ActError::Write(postponed));
        }
        Ok(ValidatedWrites { writes: prepared_writes, postponed })
    }

    /// Validates one object by a dry run; returns the UID of the object that must be deleted before, if it is replaced.
    async fn validate(&self, prepared: &PreparedWrite<'_>) -> Result<Option<String>, ClusterError> {
        isolate("validate", &prepared.write.object.key, self.dry_run(prepared)).await
    }

    async fn dry_run(&self, prepared: &PreparedWrite<'_>) -> Result<Option<String>, ClusterError> {
        match self.cluster.apply_only(&prepared.patch, ApplyMode::DryRun).await {
            Ok(()) => Ok(None),
            Err(error) if error.is_invalid() && prepared.write.object.replace => {
                check_replaceable(self.cluster, self.stack, self.inventory, prepared.write, error).await.map(Some)
            }
            Err(error) => Err(error),
        }
    }

    /// Finds the objects that an apply would change, by dry runs.
    pub async fn compare_all<'a>(&self, checks: &'a [Write], result: &mut ActResult) -> Result<(), ActError> {
        let compare =
            |check: &'a Write| async move { (check, isolate("compare", &check.object.key, self.compare(check)).await) };
        for (check, compared) in run_concurrently(checks.iter().collect(), compare).await {
            let key = check.object.key.clone();
            match compared? {
                Some(unchanged) => drop(result.applied.insert(key, unchanged)),
                None => result.drifted.push(key),
            }
        }
        Ok(())
    }

    /// Returns an object as the server has it, if an apply would not change it.
    async fn compare(&self, check: &Write) -> Result<Option<AppliedObject>, ClusterError> {
        let object = &check.object;
        let before = self.cluster.get_metadata(&object.resource, &object.key).await?;
        let after = self.cluster.apply(&PreparedWrite::new(check).patch, ApplyMode::DryRun).await?;
        let is_same =
            |before: LiveObject| before.uid == after.live.uid && before.applied_fields == after.live.applied_fields;
        Ok(before.is_some_and(is_same).then_some(after))
    }

    /// Waits until a CRD is established and each of its served versions is in discovery.
    async fn wait_until_served(&self, crd: &Write) -> Result<(), ActError> {
        let object = &crd.object;
        let mut backoff = Backoff::new(SERVED_WAIT_MAX);
        loop {
            let live: Value = self.cluster.get(&object.resource, &object.key).await?.unwrap_or_default();
            if is_established(&live) && self.is_discovered(&object.manifest).await? {
                return Ok(());
            }
            let has_time = backoff.pause().await;
            self.check_not_interrupted()?;
            if !has_time {
                return Err(ActError::NotServed { key: object.key.clone() });
            }
        }
    }

    async fn is_discovered(&self, crd: &Value) -> Result<bool, ClusterError> {
        self.cluster.forget_group(crd["spec"]["group"].as_str().unwrap_or_default()).await;
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let name = version["name"].as_str().unwrap_or_default();
            let Some(resource) = ApiResource::from_crd(crd, name).filter(|_| version["served"] == true) else {
                continue;
            };
            match self.cluster.find_resource(&resource.group, &resource.version, &resource.kind).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(false),
                // One of several API servers may serve the group later than the others.
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Returns true if nothing more may be written after a failed validation.
fn ends_pass(error: &ClusterError) -> bool {
    error.is_internal() || matches!(error, ClusterError::ShuttingDown { .. })
}

/// Returns true if a failed validation says nothing about the object itself: the server did not respond, or the namespace or
/// the CRD is being deleted. The other objects of the bundle are written.
fn is_unrelated(error: &ClusterError) -> bool {
    error.is_inconclusive() || error.is_about_terminating_parent()
}

/// Returns true if an object was rejected because of an object that an earlier stage of the same plan writes, such as the
/// ServiceAccount of a Pod.
pub fn is_explained_by_earlier_write(rejection: &ClusterError, rejected: &Write, writes: &[Write]) -> bool {
    let ClusterError::Refused { status: 403 | 404, message, .. } = rejection else { return false };
    // The message begins with the name of the rejected object itself.
    let reason = message.split_once(" is forbidden: ").map_or(message.as_str(), |(_, reason)| reason);
    let lowercase = reason.to_lowercase();
    let is_named = |write: &Write| {
        let is_kind_named = lowercase.contains(&write.object.key.kind.to_lowercase());
        is_kind_named
            && reason.split(|c| !is_name_character(c)).any(|word| word.trim_matches('.') == write.object.key.name)
    };
    let explains = |write: &Write| is_named(write) || is_limit(&write.object.key, rejected, reason);
    writes.iter().any(|write| write.stage < rejected.stage && explains(write))
}

/// Returns true if an object is the quota, or a limit range, by which another one in its namespace was rejected. Messages name
/// only the quota.
fn is_limit(key: &ObjectKey, rejected: &Write, reason: &str) -> bool {
    let is_reason = match (key.group.as_str(), key.kind.as_str()) {
        ("", "ResourceQuota") => {
            let (exceeded, failed) = (format!("exceeded quota: {},", key.name), format!("failed quota: {}:", key.name));
            reason.starts_with(&exceeded) || reason.starts_with(&failed)
        }
        ("", "LimitRange") => reason.contains(" usage per ") || reason.contains(" ratio per "),
        _ => false,
    };
    is_reason && key.namespace == rejected.object.key.namespace
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.')
}

/// Lists the first keys and the number of the others: a pass may write thousands.
fn list_keys<K: ToString>(keys: &[K]) -> String {
    let named = keys.iter().take(NAMED_MAX).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match keys.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_names_the_first_objects_and_counts_the_others() {
        let name = |number: usize| ObjectKey {
            group: String::new(),
            kind: "A".into(),
            namespace: None,
            name: number.to_string(),
        };
        let keys: Vec<ObjectKey> = (0..NAMED_MAX + 2).map(name).collect();
        let some = |count: usize| list_keys(&keys.iter().take(count).collect::<Vec<_>>());
        assert_eq!(some(2), "A 0, A 1");
        assert!(some(NAMED_MAX).ends_with(", A 19"));
        assert!(some(NAMED_MAX + 2).ends_with(", A 19 and 2 more"));
    }
}
