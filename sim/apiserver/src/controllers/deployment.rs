//! Deployments: which replica sets there are, which of them is the new one, and what is done with each.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::deployment_status::{has_deadline, is_complete, set_condition};
use super::owned_objects::Owned;
use super::template_hash::template_hash;
use super::writes::{MANAGER, condition, controller_reference, is_taken, number, words};
use crate::object::fields::{is_deleting, metadata, name, stamp, text};
use crate::object::key::StoredKey;
use crate::server::ApiServer;

pub(super) const CONTROLLER: &str = "deployment-controller";
const SETS: (&str, &str) = ("apps", "replicasets");
pub(super) const HASH_LABEL: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a deployment that its replica sets do not get.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
];

/// A deployment and its replica sets, at one look.
pub(super) struct Rollout {
    pub(super) key: StoredKey,
    pub(super) deployment: Arc<Value>,
    pub(super) new: Option<Owned>,
    /// Oldest first.
    pub(super) old: Vec<Owned>,
}

pub(super) fn wanted(object: &Value) -> i64 {
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

/// A share of the replicas: a number, or a percentage that is rounded up or down.
fn share(value: Option<&Value>, of: i64, up: bool) -> i64 {
    let Some(value) = value else { return 0 };
    match value.as_str().and_then(|text| text.strip_suffix('%')) {
        Some(percent) => {
            let product = of.saturating_mul(percent.parse().unwrap_or_default());
            if up { (product.saturating_add(99)) / 100 } else { product / 100 }
        }
        None => value.as_i64().unwrap_or_default(),
    }
}

impl Rollout {
    pub(super) fn rolls(&self) -> bool {
        text(&self.deployment, "/spec/strategy/type") != "Recreate"
    }

    pub(super) fn wanted(&self) -> i64 {
        wanted(&self.deployment)
    }

    /// How many pods there may be above what is wanted, and how many may be missing.
    fn fence(&self) -> (i64, i64) {
        let at = |field: &str| self.deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
        let surge = share(at("maxSurge"), self.wanted(), true);
        let missing = share(at("maxUnavailable"), self.wanted(), false);
        if surge == 0 && missing == 0 { (0, 1) } else { (surge, missing) }
    }

    pub(super) fn surge(&self) -> i64 {
        if self.rolls() { self.fence().0 } else { 0 }
    }

    pub(super) fn may_miss(&self) -> i64 {
        if self.rolls() && self.wanted() > 0 { self.fence().1.min(self.wanted()) } else { 0 }
    }

    pub(super) fn sets(&self) -> impl Iterator<Item = &Owned> {
        self.old.iter().chain(&self.new)
    }

    pub(super) fn sum(&self, pointer: &str) -> i64 {
        self.sets().map(|set| number(&set.object, pointer)).sum()
    }

    /// How many replicas the new set should have, now.
    pub(super) fn size_of_new(&self) -> i64 {
        let size = self.new.as_ref().map_or(0, |set| wanted(&set.object));
        if !self.rolls() {
            return self.wanted();
        }
        let room = self.wanted() + self.surge() - self.sum("/spec/replicas");
        if room <= 0 { size } else { size + room.min(self.wanted() - size) }
    }

    fn newest_revision(&self) -> i64 {
        self.old.iter().map(|set| revision(&set.object)).max().unwrap_or_default()
    }
}

/// A template without the label that tells replica sets apart.
fn without_hash(template: &Value) -> Value {
    let mut plain = template.clone();
    if let Some(labels) = plain.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    plain
}

impl ApiServer {
    pub(super) fn reconcile_deployment(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(mut rollout) = self.rollout(now, key) else { return };
        if is_deleting(&rollout.deployment) {
            return self.tell_progress(now, &rollout, false);
        }
        self.note_pause(now, &rollout);
        rollout.deployment = self.stored(key).cloned().unwrap_or(rollout.deployment);
        let paused = rollout.deployment.pointer("/spec/paused") == Some(&json!(true));
        if paused || self.is_rescaled(&rollout) {
            let Some(mut rollout) = self.renumber(now, rollout, false) else { return };
            self.rescale(now, &mut rollout);
            if paused {
                self.forget_old_sets(now, &rollout);
            }
            return self.tell_progress(now, &rollout, false);
        }
        if rollout.rolls() {
            let Some(mut rollout) = self.renumber(now, rollout, true) else { return };
            self.roll(now, &mut rollout);
        } else {
            let Some(mut rollout) = self.renumber(now, rollout, false) else { return };
            self.recreate(now, &mut rollout);
        }
    }

    /// The deployment and its replica sets as they are.
    pub(super) fn rollout(&mut self, now: Timestamp, key: &StoredKey) -> Option<Rollout> {
        let deployment = self.stored(key)?.clone();
        let mut old = self.claim(now, CONTROLLER, &deployment, SETS);
        old.sort_by_key(|set| (text(&set.object, "/metadata/creationTimestamp").to_owned(), set.key.name.clone()));
        let template = without_hash(&deployment["spec"]["template"]);
        let new = old.iter().position(|set| without_hash(&set.object["spec"]["template"]) == template);
        let new = new.map(|at| old.remove(at));
        Some(Rollout { key: key.clone(), deployment, new, old })
    }

    /// Whether somebody wants another number of replicas than the active sets were made for.
    fn is_rescaled(&self, rollout: &Rollout) -> bool {
        let desired = rollout.wanted().to_string();
        let mut active = rollout.sets().filter(|set| wanted(&set.object) > 0);
        active.any(|set| {
            let known = annotation(&set.object, DESIRED);
            !known.is_empty() && known != desired
        })
    }

    fn note_pause(&mut self, now: Timestamp, rollout: &Rollout) {
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
        let mut told = Value::clone(deployment);
        set_condition(&mut told, &stamp(now), ("Progressing", "Unknown"), reason, message);
        self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &told);
    }

    /// Gives the new set the next revision, and makes it if it is missing and wanted. `None` when the rest has to wait for
    /// the next look.
    pub(super) fn renumber(&mut self, now: Timestamp, mut rollout: Rollout, make: bool) -> Option<Rollout> {
        let next = rollout.newest_revision() + 1;
        match &rollout.new {
            Some(set) => {
                let mut changed = Value::clone(&set.object);
                annotate(&rollout.deployment, &mut changed, next);
                let patience = rollout.deployment.pointer("/spec/minReadySeconds").cloned();
                if let (Some(patience), Some(spec)) = (patience, changed["spec"].as_object_mut()) {
                    spec.insert("minReadySeconds".to_owned(), patience);
                }
                if changed != *set.object {
                    self.replace(now, CONTROLLER, &set.key.clone(), changed);
                }
                let found = self.rollout(now, &rollout.key)?;
                let set = found.new.as_ref()?.clone();
                let message = format!("Found new replica set {:?}", set.key.name);
                let unknown = condition(&found.deployment, "Progressing").is_none();
                self.note_set(now, &found, &set, unknown.then_some(("FoundNewReplicaSet", message)));
                self.rollout(now, &rollout.key)
            }
            None if make => {
                let made = self.make_set(now, &mut rollout, next)?;
                let message = format!("Created new replica set {:?}", made.key.name);
                self.note_set(now, &rollout, &made, Some(("NewReplicaSetCreated", message)));
                self.rollout(now, &rollout.key)
            }
            None => Some(rollout),
        }
    }

    /// Writes into the deployment which revision it has now.
    fn note_set(&mut self, now: Timestamp, rollout: &Rollout, set: &Owned, said: Option<(&str, String)>) {
        let mut told = Value::clone(&rollout.deployment);
        set_annotation(&mut told, REVISION, annotation(&set.object, REVISION));
        if let (Some((reason, message)), true) = (said, has_deadline(&rollout.deployment)) {
            set_condition(&mut told, &stamp(now), ("Progressing", "True"), reason, &message);
        }
        self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &told);
    }

    fn make_set(&mut self, now: Timestamp, rollout: &mut Rollout, next: i64) -> Option<Owned> {
        let deployment = rollout.deployment.clone();
        let collisions = deployment.pointer("/status/collisionCount").and_then(Value::as_u64);
        let hash =
            template_hash(&deployment["spec"]["template"], collisions.and_then(|count| u32::try_from(count).ok()));
        let own = format!("{}-{hash}", name(&deployment));
        let mut template = deployment["spec"]["template"].clone();
        metadata(&mut template).entry("labels").or_insert_with(|| json!({}))[HASH_LABEL] = json!(hash);
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][HASH_LABEL] = json!(hash);
        let mut set = json!({
            "metadata": {
                "name": own, "labels": template["metadata"]["labels"],
                "ownerReferences": [controller_reference(&deployment)],
            },
            "spec": {"replicas": rollout.size_of_new(), "selector": selector, "template": template},
        });
        if let Some(patience) = deployment.pointer("/spec/minReadySeconds") {
            set["spec"]["minReadySeconds"] = patience.clone();
        }
        annotate(&deployment, &mut set, next);
        annotate_size(rollout, &mut set);
        let namespace = text(&deployment, "/metadata/namespace");
        match self.make(now, CONTROLLER, SETS, namespace, set) {
            Ok(object) => {
                let size = wanted(&object);
                let message = format!("Scaled up replica set {own} from 0 to {size}");
                if size > 0 {
                    self.tell(now, CONTROLLER, &deployment, ("Normal", "ScalingReplicaSet"), &message);
                }
                let key = super::writes::key_of("apps", "ReplicaSet", "replicasets", Some(namespace), &own);
                Some(Owned { key: Arc::new(key), object })
            }
            Err(error) => {
                let mut told = Value::clone(&deployment);
                if is_taken(&error) {
                    // Somebody else's set has the name: another hash gives another one.
                    told["status"]["collisionCount"] = json!(collisions.unwrap_or_default() + 1);
                } else {
                    let message = words(&error);
                    let at = stamp(now);
                    set_condition(&mut told, &at, ("Progressing", "False"), "ReplicaSetCreateError", &message);
                }
                self.replace_status(now, (CONTROLLER, MANAGER), &rollout.key, &told);
                None
            }
        }
    }

    /// Gives a set another size, and says for which size of the deployment.
    pub(super) fn resize(&mut self, now: Timestamp, rollout: &Rollout, set: &Owned, size: i64) -> bool {
        let mut changed = Value::clone(&set.object);
        let before = wanted(&set.object);
        changed["spec"]["replicas"] = json!(size);
        annotate_size(rollout, &mut changed);
        if changed == *set.object {
            return false;
        }
        self.replace(now, CONTROLLER, &set.key, changed);
        if size != before {
            let word = if size > before { "up" } else { "down" };
            let message = format!("Scaled {word} replica set {} from {before} to {size}", set.key.name);
            self.tell(now, CONTROLLER, &rollout.deployment, ("Normal", "ScalingReplicaSet"), &message);
        }
        size != before
    }

    /// Deletes the oldest sets that nobody may want to go back to.
    pub(super) fn forget_old_sets(&mut self, now: Timestamp, rollout: &Rollout) {
        let Some(limit) = rollout.deployment.pointer("/spec/revisionHistoryLimit").and_then(Value::as_u64) else {
            return;
        };
        let mut old: Vec<&Owned> = rollout.old.iter().filter(|set| !is_deleting(&set.object)).collect();
        old.sort_by_key(|set| revision(&set.object));
        let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for set in old.into_iter().take(excess) {
            let observed =
                number(&set.object, "/metadata/generation") <= number(&set.object, "/status/observedGeneration");
            if observed && wanted(&set.object) == 0 && number(&set.object, "/status/replicas") == 0 {
                self.discard(now, CONTROLLER, &set.key);
            }
        }
    }

    /// What follows every rollout, of whichever strategy.
    pub(super) fn conclude(&mut self, now: Timestamp, rollout: &Rollout) {
        if is_complete(&rollout.deployment, &rollout.deployment["status"]) {
            self.forget_old_sets(now, rollout);
        }
        self.tell_progress(now, rollout, true);
    }
}

/// Copies annotations to a set and gives it a revision that is newer than every other's.
fn annotate(deployment: &Value, set: &mut Value, next: i64) {
    let own = deployment.pointer("/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in own.iter().filter(|(key, _)| !NOT_COPIED.contains(&key.as_str())) {
        set_annotation(set, key, value.as_str().unwrap_or_default());
    }
    let before = annotation(set, REVISION).to_owned();
    if before.parse::<i64>().unwrap_or_default() < next {
        if !before.is_empty() {
            let history = annotation(set, HISTORY);
            let history = if history.is_empty() { before } else { format!("{history},{before}") };
            set_annotation(set, HISTORY, &history);
        }
        set_annotation(set, REVISION, &next.to_string());
    }
}

fn annotate_size(rollout: &Rollout, set: &mut Value) {
    set_annotation(set, DESIRED, &rollout.wanted().to_string());
    set_annotation(set, MOST, &(rollout.wanted() + rollout.surge()).to_string());
}
