//! The Deployment controller: finds and creates its replica sets, and chooses what to do with each.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::deployment_status::{has_deadline, is_complete, set_condition};
use super::owned_objects::OwnedObject;
use super::template_hash::template_hash;
use super::writes::{MANAGER, condition, controller_reference, error_message, is_already_exists, number};
use crate::object::fields::{is_deleting, metadata, name, stamp, text};
use crate::object::key::StoredKey;
use crate::server::ApiServer;

pub(super) const CONTROLLER: &str = "deployment-controller";
const SETS: (&str, &str) = ("apps", "replicasets");
pub(super) const HASH_LABEL: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a deployment that are not copied to its replica sets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

/// A deployment and its replica sets, as observed in one reconciliation.
pub(super) struct Rollout {
    pub(super) key: StoredKey,
    pub(super) deployment: Arc<Value>,
    pub(super) new: Option<OwnedObject>,
    /// Replica sets of older templates, oldest first.
    pub(super) old: Vec<OwnedObject>,
}

pub(super) fn desired_replicas(object: &Value) -> i64 {
    object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"].get("annotations").and_then(|all| all.get(key)).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn revision(object: &Value) -> i64 {
    annotation(object, REVISION).parse().unwrap_or_default()
}

fn set_annotation(object: &mut Value, key: &str, value: &str) {
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    annotations[key] = json!(value);
}

/// Resolves a number, or a percentage of the replicas that is rounded up or down.
fn resolve_share(value: Option<&Value>, replicas: i64, round_up: bool) -> i64 {
    let Some(value) = value else { return 0 };
    match value.as_str().and_then(|text| text.strip_suffix('%')) {
        Some(percent) => {
            let product = replicas.saturating_mul(percent.parse().unwrap_or_default());
            if round_up { (product.saturating_add(99)) / 100 } else { product / 100 }
        }
        None => value.as_i64().unwrap_or_default(),
    }
}

impl Rollout {
    pub(super) fn is_rolling_update(&self) -> bool {
        text(&self.deployment, "/spec/strategy/type") != "Recreate"
    }

    pub(super) fn desired_replicas(&self) -> i64 {
        desired_replicas(&self.deployment)
    }

    /// Returns the number of pods that may exist above the desired replicas, and the number that may be unavailable.
    fn rollout_limits(&self) -> (i64, i64) {
        let at = |field: &str| self.deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
        let max_surge = resolve_share(at("maxSurge"), self.desired_replicas(), true);
        let max_unavailable = resolve_share(at("maxUnavailable"), self.desired_replicas(), false);
        if max_surge == 0 && max_unavailable == 0 { (0, 1) } else { (max_surge, max_unavailable) }
    }

    pub(super) fn max_surge(&self) -> i64 {
        if self.is_rolling_update() { self.rollout_limits().0 } else { 0 }
    }

    pub(super) fn max_unavailable(&self) -> i64 {
        if self.is_rolling_update() && self.desired_replicas() > 0 {
            self.rollout_limits().1.min(self.desired_replicas())
        } else {
            0
        }
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &OwnedObject> {
        self.old.iter().chain(&self.new)
    }

    pub(super) fn sum(&self, pointer: &str) -> i64 {
        self.sets().map(|set| number(&set.object, pointer)).sum()
    }

    /// Returns the number of replicas that the new set should have now.
    pub(super) fn new_set_size(&self) -> i64 {
        let size = self.new.as_ref().map_or(0, |set| desired_replicas(&set.object));
        if !self.is_rolling_update() {
            return self.desired_replicas();
        }
        let room = self.desired_replicas() + self.max_surge() - self.sum("/spec/replicas");
        if room <= 0 { size } else { size + room.min(self.desired_replicas() - size) }
    }

    fn newest_revision(&self) -> i64 {
        self.old.iter().map(|set| revision(&set.object)).max().unwrap_or_default()
    }
}

/// Removes the label that distinguishes replica sets from a template.
fn without_hash(template: &Value) -> Value {
    let mut plain = template.clone();
    if let Some(labels) = plain.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    plain
}

impl ApiServer {
    pub(super) fn reconcile_deployment(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(mut rollout) = self.observe_rollout(now, key) else { return };
        if is_deleting(&rollout.deployment) {
            return self.update_deployment_status(now, &rollout, false);
        }
        self.record_pause(now, &rollout);
        rollout.deployment = self.stored(key).cloned().unwrap_or(rollout.deployment);
        let paused = rollout.deployment.pointer("/spec/paused") == Some(&json!(true));
        if paused || self.is_rescaled(&rollout) {
            let Some(mut rollout) = self.sync_new_set(now, rollout, false) else { return };
            self.scale_sets(now, &mut rollout);
            if paused {
                self.delete_old_sets(now, &rollout);
            }
            return self.update_deployment_status(now, &rollout, false);
        }
        if rollout.is_rolling_update() {
            let Some(mut rollout) = self.sync_new_set(now, rollout, true) else { return };
            self.roll_out(now, &mut rollout);
        } else {
            let Some(mut rollout) = self.sync_new_set(now, rollout, false) else { return };
            self.recreate(now, &mut rollout);
        }
    }

    /// Returns the deployment and its replica sets as they are stored.
    pub(super) fn observe_rollout(&mut self, now: Timestamp, key: &StoredKey) -> Option<Rollout> {
        let deployment = self.stored(key)?.clone();
        let mut old = self.claim(now, CONTROLLER, &deployment, SETS);
        old.sort_by_key(|set| (text(&set.object, "/metadata/creationTimestamp").to_owned(), set.key.name.clone()));
        let template = without_hash(&deployment["spec"]["template"]);
        let new = old.iter().position(|set| without_hash(&set.object["spec"]["template"]) == template);
        let new = new.map(|at| old.remove(at));
        Some(Rollout { key: key.clone(), deployment, new, old })
    }

    /// True if the desired replicas differ from those that the active sets were scaled for.
    fn is_rescaled(&self, rollout: &Rollout) -> bool {
        let desired = rollout.desired_replicas().to_string();
        let mut active = rollout.sets().filter(|set| desired_replicas(&set.object) > 0);
        active.any(|set| {
            let known = annotation(&set.object, DESIRED_REPLICAS);
            !known.is_empty() && known != desired
        })
    }

    fn record_pause(&mut self, now: Timestamp, rollout: &Rollout) {
        let deployment = &rollout.deployment;
        let reason = condition(deployment, "Progressing").map(|known| text(known, "/reason")).unwrap_or_default();
        if !has_deadline(deployment) || reason == "ProgressDeadlineExceeded" {
            return;
        }
        let paused = deployment.pointer("/spec/paused") == Some(&json!(true));
        let (reason, message) = match (paused, reason == "DeploymentPaused") {
            (true, false) => ("DeploymentPaused", "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            (true, true) | (false, false) => return,
        };
        let mut updated_object = Value::clone(deployment);
        set_condition(&mut updated_object, &stamp(now), ("Progressing", "Unknown"), reason, message);
        self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
    }

    /// Gives the new set the next revision, and creates the set if it is missing and `create` is true. `None` if the rest
    /// must wait for the next reconciliation.
    pub(super) fn sync_new_set(&mut self, now: Timestamp, mut rollout: Rollout, create: bool) -> Option<Rollout> {
        let next = rollout.newest_revision() + 1;
        match &rollout.new {
            Some(set) => {
                let mut changed = Value::clone(&set.object);
                annotate(&rollout.deployment, &mut changed, next);
                let min_ready_seconds = rollout.deployment.pointer("/spec/minReadySeconds").cloned();
                if let (Some(min_ready_seconds), Some(spec)) = (min_ready_seconds, changed["spec"].as_object_mut()) {
                    spec.insert("minReadySeconds".to_owned(), min_ready_seconds);
                }
                if changed != *set.object {
                    self.replace(now, CONTROLLER, &set.key.clone(), changed);
                }
                let observed = self.observe_rollout(now, &rollout.key)?;
                let set = observed.new.as_ref()?.clone();
                let message = format!("Found new replica set {:?}", set.key.name);
                let is_new = condition(&observed.deployment, "Progressing").is_none();
                self.record_new_set(now, &observed, &set, is_new.then_some(("FoundNewReplicaSet", message)));
                self.observe_rollout(now, &rollout.key)
            }
            None if create => {
                let created = self.create_set(now, &mut rollout, next)?;
                let message = format!("Created new replica set {:?}", created.key.name);
                self.record_new_set(now, &rollout, &created, Some(("NewReplicaSetCreated", message)));
                self.observe_rollout(now, &rollout.key)
            }
            None => Some(rollout),
        }
    }

    /// Records the revision of the new set in the deployment.
    fn record_new_set(
        &mut self,
        now: Timestamp,
        rollout: &Rollout,
        set: &OwnedObject,
        progress: Option<(&str, String)>,
    ) {
        let mut updated_object = Value::clone(&rollout.deployment);
        set_annotation(&mut updated_object, REVISION, annotation(&set.object, REVISION));
        if let (Some((reason, message)), true) = (progress, has_deadline(&rollout.deployment)) {
            set_condition(&mut updated_object, &stamp(now), ("Progressing", "True"), reason, &message);
        }
        self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
    }

    fn create_set(&mut self, now: Timestamp, rollout: &mut Rollout, next: i64) -> Option<OwnedObject> {
        let deployment = rollout.deployment.clone();
        let collisions = deployment.pointer("/status/collisionCount").and_then(Value::as_u64);
        let hash =
            template_hash(&deployment["spec"]["template"], collisions.and_then(|count| u32::try_from(count).ok()));
        let set_name = format!("{}-{hash}", name(&deployment));
        let mut template = deployment["spec"]["template"].clone();
        metadata(&mut template).entry("labels").or_insert_with(|| json!({}))[HASH_LABEL] = json!(hash);
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH_LABEL] = json!(hash);
        let mut set = json!({
            "metadata": {
                "name": set_name, "labels": template["metadata"]["labels"],
                "ownerReferences": [controller_reference(&deployment)],
            },
            "spec": {"replicas": rollout.new_set_size(), "selector": selector, "template": template},
        });
        if let Some(min_ready_seconds) = deployment.pointer("/spec/minReadySeconds") {
            set["spec"]["minReadySeconds"] = min_ready_seconds.clone();
        }
        annotate(&deployment, &mut set, next);
        annotate_size(rollout, &mut set);
        let namespace = text(&deployment, "/metadata/namespace");
        match self.create_object(now, CONTROLLER, SETS, namespace, set) {
            Ok(object) => {
                let size = desired_replicas(&object);
                let message = format!("Scaled up replica set {set_name} from 0 to {size}");
                if size > 0 {
                    self.record_event(now, CONTROLLER, &deployment, ("Normal", "ScalingReplicaSet"), &message);
                }
                let key = super::writes::builtin_key("apps", "ReplicaSet", "replicasets", Some(namespace), &set_name);
                Some(OwnedObject { key: Arc::new(key), object })
            }
            Err(error) => {
                let mut updated_object = Value::clone(&deployment);
                if is_already_exists(&error) {
                    // A set of another owner has the name: a higher collision count changes the hash.
                    updated_object["status"]["collisionCount"] = json!(collisions.unwrap_or_default() + 1);
                } else {
                    let message = error_message(&error);
                    let at = stamp(now);
                    set_condition(
                        &mut updated_object,
                        &at,
                        ("Progressing", "False"),
                        "ReplicaSetCreateError",
                        &message,
                    );
                }
                self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
                None
            }
        }
    }

    /// Scales a set, and records the desired replicas that the size was computed for. Returns true if the size changed.
    pub(super) fn resize(&mut self, now: Timestamp, rollout: &Rollout, set: &OwnedObject, size: i64) -> bool {
        let mut changed = Value::clone(&set.object);
        let before = desired_replicas(&set.object);
        changed["spec"]["replicas"] = json!(size);
        annotate_size(rollout, &mut changed);
        if changed == *set.object {
            return false;
        }
        self.replace(now, CONTROLLER, &set.key, changed);
        if size != before {
            let direction = if size > before { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {} from {before} to {size}", set.key.name);
            self.record_event(now, CONTROLLER, &rollout.deployment, ("Normal", "ScalingReplicaSet"), &message);
        }
        size != before
    }

    /// Deletes the oldest sets beyond the revision history limit.
    pub(super) fn delete_old_sets(&mut self, now: Timestamp, rollout: &Rollout) {
        let Some(limit) = rollout.deployment.pointer("/spec/revisionHistoryLimit").and_then(Value::as_u64) else {
            return;
        };
        let mut old: Vec<&OwnedObject> = rollout.old.iter().filter(|set| !is_deleting(&set.object)).collect();
        old.sort_by_key(|set| revision(&set.object));
        let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for set in old.into_iter().take(excess) {
            let observed =
                number(&set.object, "/metadata/generation") <= number(&set.object, "/status/observedGeneration");
            if observed && desired_replicas(&set.object) == 0 && number(&set.object, "/status/replicas") == 0 {
                self.delete_object(now, CONTROLLER, &set.key);
            }
        }
    }

    /// Finishes a reconciliation, with either strategy.
    pub(super) fn finish_sync(&mut self, now: Timestamp, rollout: &Rollout) {
        if is_complete(&rollout.deployment, &rollout.deployment["status"]) {
            self.delete_old_sets(now, rollout);
        }
        self.update_deployment_status(now, rollout, true);
    }
}

/// Copies the deployment's annotations to a set, and gives it the next revision.
fn annotate(deployment: &Value, set: &mut Value, next: i64) {
    let annotations =
        deployment.pointer("/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in annotations.iter().filter(|(key, _)| !NOT_COPIED.contains(&key.as_str())) {
        set_annotation(set, key, value.as_str().unwrap_or_default());
    }
    let before = annotation(set, REVISION).to_owned();
    if before.parse::<i64>().unwrap_or_default() < next {
        if !before.is_empty() {
            let history = annotation(set, REVISION_HISTORY);
            let history = if history.is_empty() { before } else { format!("{history},{before}") };
            set_annotation(set, REVISION_HISTORY, &history);
        }
        set_annotation(set, REVISION, &next.to_string());
    }
}

fn annotate_size(rollout: &Rollout, set: &mut Value) {
    set_annotation(set, DESIRED_REPLICAS, &rollout.desired_replicas().to_string());
    set_annotation(set, MAX_REPLICAS, &(rollout.desired_replicas() + rollout.max_surge()).to_string());
}
