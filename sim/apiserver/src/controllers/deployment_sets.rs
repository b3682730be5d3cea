//! The replica sets of a deployment: finding, creating, scaling and deleting them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::deployment_rollout::{
    CONTROLLER, DESIRED_REPLICAS, HASH_LABEL, MAX_REPLICAS, REVISION, REVISION_HISTORY, Rollout, annotation,
    desired_replicas, revision, set_annotation,
};
use super::deployment_status::{has_deadline, is_complete, set_condition, update_deployment_status};
use super::owned_objects::{OwnedObject, claim_objects};
use super::template_hash::template_hash;
use super::writes::{
    MANAGER, condition, create_object, delete_object, error_message, is_already_exists, number, record_event,
    replace_object, replace_status,
};
use crate::object::fields::{format_timestamp, is_deleting, metadata, name, string_at};
use crate::object::key::{StoredKey, builtin_key};
use crate::object::owners::controller_reference;
use crate::state::server_state::ServerState;

const SETS: (&str, &str) = ("apps", "replicasets");

/// Annotations of a deployment that are not copied to its replica sets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

/// Removes the label that distinguishes replica sets from a template.
fn without_hash(template: &Value) -> Value {
    let mut plain = template.clone();
    if let Some(labels) = plain.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    plain
}

/// Returns the deployment and its replica sets as they are stored.
pub(crate) fn observe_rollout(state: &mut ServerState, now: Timestamp, key: &StoredKey) -> Option<Rollout> {
    let deployment = state.store.find_key(key)?.clone();
    let mut old = claim_objects(state, now, CONTROLLER, &deployment, SETS);
    old.sort_by_key(|set| (string_at(&set.object, "/metadata/creationTimestamp").to_owned(), set.key.name.clone()));
    let template = without_hash(&deployment["spec"]["template"]);
    let new = old.iter().position(|set| without_hash(&set.object["spec"]["template"]) == template);
    let new = new.map(|index| old.remove(index));
    Some(Rollout { key: key.clone(), deployment, new, old })
}

/// Gives the new set the next revision, and creates the set if it is missing and `create` is true. `None` if the rest
/// must wait for the next reconciliation.
pub(crate) fn sync_new_set(
    state: &mut ServerState,
    now: Timestamp,
    mut rollout: Rollout,
    create: bool,
) -> Option<Rollout> {
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
                replace_object(state, now, CONTROLLER, &set.key.clone(), changed);
            }
            let observed = observe_rollout(state, now, &rollout.key)?;
            let set = observed.new.as_ref()?.clone();
            let message = format!("Found new replica set {:?}", set.key.name);
            let is_new = condition(&observed.deployment, "Progressing").is_none();
            record_new_set(state, now, &observed, &set, is_new.then_some(("FoundNewReplicaSet", message)));
            observe_rollout(state, now, &rollout.key)
        }
        None if create => {
            let created = create_set(state, now, &mut rollout, next)?;
            let message = format!("Created new replica set {:?}", created.key.name);
            record_new_set(state, now, &rollout, &created, Some(("NewReplicaSetCreated", message)));
            observe_rollout(state, now, &rollout.key)
        }
        None => Some(rollout),
    }
}

/// Records the revision of the new set in the deployment.
fn record_new_set(
    state: &mut ServerState,
    now: Timestamp,
    rollout: &Rollout,
    set: &OwnedObject,
    progress: Option<(&str, String)>,
) {
    let mut updated_object = Value::clone(&rollout.deployment);
    set_annotation(&mut updated_object, REVISION, annotation(&set.object, REVISION));
    if let (Some((reason, message)), true) = (progress, has_deadline(&rollout.deployment)) {
        set_condition(&mut updated_object, &format_timestamp(now), ("Progressing", "True"), reason, &message);
    }
    replace_status(state, now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
}

fn create_set(state: &mut ServerState, now: Timestamp, rollout: &mut Rollout, next: i64) -> Option<OwnedObject> {
    let deployment = rollout.deployment.clone();
    let collisions = deployment.pointer("/status/collisionCount").and_then(Value::as_u64);
    let hash = template_hash(&deployment["spec"]["template"], collisions.and_then(|count| u32::try_from(count).ok()));
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
    let namespace = string_at(&deployment, "/metadata/namespace");
    match create_object(state, now, CONTROLLER, SETS, namespace, set) {
        Ok(object) => {
            let size = desired_replicas(&object);
            let message = format!("Scaled up replica set {set_name} from 0 to {size}");
            if size > 0 {
                record_event(state, now, CONTROLLER, &deployment, ("Normal", "ScalingReplicaSet"), &message);
            }
            let key = builtin_key("apps", "ReplicaSet", "replicasets", Some(namespace), &set_name);
            Some(OwnedObject { key: Arc::new(key), object })
        }
        Err(error) => {
            let mut updated_object = Value::clone(&deployment);
            if is_already_exists(&error) {
                // A set of another owner has the name: a higher collision count changes the hash.
                updated_object["status"]["collisionCount"] = json!(collisions.unwrap_or_default() + 1);
            } else {
                let message = error_message(&error);
                let timestamp = format_timestamp(now);
                set_condition(
                    &mut updated_object,
                    &timestamp,
                    ("Progressing", "False"),
                    "ReplicaSetCreateError",
                    &message,
                );
            }
            replace_status(state, now, (CONTROLLER, MANAGER), &rollout.key, &updated_object);
            None
        }
    }
}

/// Scales a set, and records the desired replicas that the size was computed for. Returns true if the size changed.
pub(crate) fn scale_set(
    state: &mut ServerState,
    now: Timestamp,
    rollout: &Rollout,
    set: &OwnedObject,
    size: i64,
) -> bool {
    let mut changed = Value::clone(&set.object);
    let before = desired_replicas(&set.object);
    changed["spec"]["replicas"] = json!(size);
    annotate_size(rollout, &mut changed);
    if changed == *set.object {
        return false;
    }
    replace_object(state, now, CONTROLLER, &set.key, changed);
    if size != before {
        let direction = if size > before { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {} from {before} to {size}", set.key.name);
        record_event(state, now, CONTROLLER, &rollout.deployment, ("Normal", "ScalingReplicaSet"), &message);
    }
    size != before
}

/// Deletes the oldest sets beyond the revision history limit.
pub(crate) fn delete_old_sets(state: &mut ServerState, now: Timestamp, rollout: &Rollout) {
    let Some(limit) = rollout.deployment.pointer("/spec/revisionHistoryLimit").and_then(Value::as_u64) else {
        return;
    };
    let mut old: Vec<&OwnedObject> = rollout.old.iter().filter(|set| !is_deleting(&set.object)).collect();
    old.sort_by_key(|set| revision(&set.object));
    let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    for set in old.into_iter().take(excess) {
        let observed = number(&set.object, "/metadata/generation") <= number(&set.object, "/status/observedGeneration");
        if observed && desired_replicas(&set.object) == 0 && number(&set.object, "/status/replicas") == 0 {
            delete_object(state, now, CONTROLLER, &set.key);
        }
    }
}

/// Finishes a reconciliation, with either strategy.
pub(crate) fn finish_sync(state: &mut ServerState, now: Timestamp, rollout: &Rollout) {
    if is_complete(&rollout.deployment, &rollout.deployment["status"]) {
        delete_old_sets(state, now, rollout);
    }
    update_deployment_status(state, now, rollout, true);
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
