//! The Job controller: creates pods until enough have succeeded or too many have failed.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::job_status::{JobEnd, decided_end, format_indexes, is_finished, parse_indexes, set_condition};
use super::owned_objects::{OwnedObject, claim_objects, compare_deletion_order, has_ended, is_active, is_ready};
use super::writes::{
    MANAGER, create_object, delete_object, error_message, number, record_event, replace_status, set_count,
};
use crate::controllers::owned_objects::pod_from;
use crate::object::fields::{
    add_duration, array_at, finalizers, format_timestamp, is_deleting, name, push, set_finalizers, string_at,
};
use crate::object::key::StoredKey;
use crate::object::owners::controller_of;
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::verbs::delete::{Propagation, delete_stored};
use crate::writes::commit::remove;
use crate::writes::tracked::write_tracked;

const CONTROLLER: &str = "job-controller";
/// Finalizer that keeps a pod until it was counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Environment variable with the index of a pod.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// Delay before the next pod after a failure; doubled with each failure.
const BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const BACK_OFF_MAX: SignedDuration = SignedDuration::from_secs(600);
/// Maximum number of pods created in one reconciliation.
const BURST_PODS_MAX: i64 = 500;
/// Delay before the retry of a rejected create.
const CREATE_RETRY_DELAY: SignedDuration = SignedDuration::from_secs(1);

/// State of one reconciliation. `job` has the status that will be written.
struct JobState {
    key: StoredKey,
    job: Value,
    pods: Vec<OwnedObject>,
}

impl JobState {
    fn is_suspended(&self) -> bool {
        self.job.pointer("/spec/suspend") == Some(&json!(true))
    }

    fn is_indexed(&self) -> bool {
        string_at(&self.job, "/spec/completionMode") == "Indexed"
    }

    fn completions(&self) -> Option<i64> {
        self.job.pointer("/spec/completions").and_then(Value::as_i64)
    }

    fn active(&self) -> Vec<&OwnedObject> {
        self.pods.iter().filter(|pod| is_active(&pod.object)).collect()
    }

    fn active_count(&self) -> i64 {
        i64::try_from(self.active().len()).unwrap_or(i64::MAX)
    }

    /// Returns the number of pods that should run now.
    fn desired_active(&self) -> i64 {
        let parallel = self.job.pointer("/spec/parallelism").and_then(Value::as_i64).unwrap_or(1);
        let succeeded = number(&self.job, "/status/succeeded");
        match self.completions() {
            Some(completions) => parallel.min(completions - succeeded).max(0),
            // After the first success the other pods may finish, and none is added.
            None if succeeded > 0 => self.active_count(),
            None => parallel,
        }
    }

    /// Returns the number of pods that are being deleted.
    fn terminating_count(&self) -> i64 {
        let terminating = self.pods.iter().filter(|pod| is_deleting(&pod.object) && !has_ended(&pod.object));
        i64::try_from(terminating.count()).unwrap_or(i64::MAX)
    }

    /// Returns the number of pods that are not replaced until they are gone.
    fn unreplaced_count(&self) -> i64 {
        let replaces_failed_only = string_at(&self.job, "/spec/podReplacementPolicy") == "Failed";
        if replaces_failed_only { self.terminating_count() } else { 0 }
    }

    fn is_done(&self) -> bool {
        let succeeded = number(&self.job, "/status/succeeded");
        match self.completions() {
            Some(completions) => succeeded >= completions && self.active().is_empty(),
            None => succeeded > 0 && self.active().is_empty(),
        }
    }
}

/// Value of `spec.managedBy` for this controller; another one runs its jobs itself.
const BUILT_IN: &str = "kubernetes.io/job-controller";

pub(crate) fn reconcile_job(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    if let Some(namespace) = &key.namespace {
        release_orphans(state, now, namespace);
    }
    let Some(live) = state.store.find_key(key).cloned() else { return };
    if !matches!(string_at(&live, "/spec/managedBy"), "" | BUILT_IN) {
        return;
    }
    let pods = claim_objects(state, now, CONTROLLER, &live, ("", "pods"));
    let mut observed = JobState { key: key.clone(), job: Value::clone(&live), pods };
    count_ended(state, now, &mut observed);
    if is_finished(&live) {
        return expire_job(state, now, &observed);
    }
    if is_deleting(&live) {
        return;
    }
    let decision = decided_end(&observed.job).or_else(|| find_failure(state, now, &observed));
    if decision.is_some() {
        stop_pods(state, now, &observed, usize::MAX, false);
    } else {
        sync_job_pods(state, now, &mut observed);
    }
    observed.pods = claim_objects(state, now, CONTROLLER, &live, ("", "pods"));
    if let Some(end) = decision.or_else(|| observed.is_done().then(JobEnd::completed)) {
        end_job(state, now, &mut observed, &end);
    }
    update_job_status(state, now, &mut observed);
}

/// Counts the pods that ended, each once, and removes their tracking finalizer.
fn count_ended(state: &mut ServerState, now: Timestamp, observed: &mut JobState) {
    let mut done = parse_indexes(string_at(&observed.job, "/status/completedIndexes"));
    let is_job_over = is_deleting(&observed.job) || is_finished(&observed.job);
    for pod in &observed.pods {
        let object = &pod.object;
        let is_over = has_ended(object) || is_deleting(object);
        if !(is_over || is_job_over) || !finalizers(object).contains(&TRACKING) {
            continue;
        }
        let has_succeeded = string_at(object, "/status/phase") == "Succeeded";
        let index = object["metadata"]["annotations"].get(INDEX).and_then(Value::as_str);
        let index = index.and_then(|index| index.parse::<i64>().ok()).filter(|_| observed.is_indexed());
        let is_repeated = has_succeeded && index.is_some_and(|index| !done.insert(index));
        // Pods that are deleted because the job is suspended did not fail.
        let is_counted = is_over && (has_succeeded || !observed.is_suspended() || has_ended(object)) && !is_repeated;
        let field = if has_succeeded { "succeeded" } else { "failed" };
        if is_counted {
            let count = number(&observed.job, &format!("/status/{field}")) + 1;
            observed.job["status"][field] = json!(count);
        }
        release_pod(state, now, &pod.key, object);
    }
    if observed.is_indexed() && !done.is_empty() {
        observed.job["status"]["completedIndexes"] = json!(format_indexes(&done));
    }
}

/// Removes the tracking finalizer of the pods whose job no longer exists, or no longer controls them.
fn release_orphans(state: &mut ServerState, now: Timestamp, namespace: &str) {
    let tracked =
        state.store.in_namespace("", "pods", namespace).filter(|pod| finalizers(&pod.object).contains(&TRACKING));
    let has_job = |pod: &Value| {
        let reference = controller_of(pod).filter(|reference| reference["kind"] == "Job");
        let job = reference.and_then(|job| state.store.find("batch", "jobs", Some(namespace), string_at(job, "/name")));
        job.is_some_and(|job| reference.is_some_and(|reference| reference["uid"] == job["metadata"]["uid"]))
    };
    let orphans: Vec<OwnedObject> = tracked
        .filter(|pod| !has_job(&pod.object))
        .map(|pod| OwnedObject { key: pod.key.clone(), object: pod.object.object() })
        .collect();
    for orphan in orphans {
        release_pod(state, now, &orphan.key, &orphan.object);
    }
}

/// Removes the tracking finalizer of a pod, and the pod if nothing else keeps it.
fn release_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey, pod: &Value) {
    let mut released = pod.clone();
    let remaining: Vec<&str> = finalizers(pod).into_iter().filter(|finalizer| *finalizer != TRACKING).collect();
    set_finalizers(&mut released, &remaining);
    write_tracked(state, now, &Attribution::controller(CONTROLLER, Verb::Patch), MANAGER, key, &released);
    remove_released_pod(state, now, key);
}

/// Removes a pod that is being deleted, has no finalizer left and no running containers.
fn remove_released_pod(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(pod) = state.store.find_key(key).filter(|pod| is_deleting(pod) && finalizers(pod).is_empty()) else {
        return;
    };
    let is_idle =
        string_at(pod, "/spec/nodeName").is_empty() || number(pod, "/metadata/deletionGracePeriodSeconds") == 0;
    if is_idle {
        remove(state, now, &Attribution::controller(CONTROLLER, Verb::Delete), key);
    }
}

/// Returns the failure of a job, if it has failed.
fn find_failure(state: &mut ServerState, now: Timestamp, observed: &JobState) -> Option<JobEnd> {
    let limit = observed.job.pointer("/spec/backoffLimit").and_then(Value::as_i64).unwrap_or(6);
    let restarts: i64 = observed
        .active()
        .iter()
        .flat_map(|pod| array_at(&pod.object, "/status/containerStatuses").to_vec())
        .map(|status| number(&status, "/restartCount"))
        .sum();
    let restarts_on_failure = string_at(&observed.job, "/spec/template/spec/restartPolicy") == "OnFailure";
    let is_over_limit = restarts_on_failure && restarts > 0 && restarts >= limit;
    if number(&observed.job, "/status/failed") > limit || is_over_limit {
        return Some(JobEnd::failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let seconds = observed.job.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64)?;
    let start: Timestamp = string_at(&observed.job, "/status/startTime").parse().ok()?;
    if observed.is_suspended() {
        return None;
    }
    let end = add_duration(start, SignedDuration::from_secs(seconds));
    if end > now {
        let task = Task::Reconcile(Workload::Job, observed.key.clone());
        state.schedule_after(now, end.duration_since(now).max(SignedDuration::from_secs(1)), task);
        return None;
    }
    Some(JobEnd::failed("DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// Creates the missing pods, or deletes the surplus ones.
fn sync_job_pods(state: &mut ServerState, now: Timestamp, observed: &mut JobState) {
    if observed.is_suspended() {
        stop_pods(state, now, observed, usize::MAX, true);
        if set_condition(
            &mut observed.job,
            &format_timestamp(now),
            ("Suspended", true),
            "JobSuspended",
            "Job suspended",
        ) {
            record_event(state, now, CONTROLLER, &observed.job, ("Normal", "Suspended"), "Job suspended");
        }
        return;
    }
    let was_suspended = super::writes::is_condition_true(&observed.job, "Suspended");
    if was_suspended
        && set_condition(&mut observed.job, &format_timestamp(now), ("Suspended", false), "JobResumed", "Job resumed")
    {
        record_event(state, now, CONTROLLER, &observed.job, ("Normal", "Resumed"), "Job resumed");
        // The deadline is that of the time since then.
        observed.job["status"].as_object_mut().into_iter().for_each(|status| drop(status.remove("startTime")));
    }
    if observed.job.pointer("/status/startTime").is_none() {
        observed.job["status"]["startTime"] = json!(format_timestamp(now));
        // The deadline counts from this time.
        let task = Task::Reconcile(Workload::Job, observed.key.clone());
        state.schedule_after(now, state.delays.job, task);
    }
    let (desired, active, unreplaced) =
        (observed.desired_active(), observed.active_count(), observed.unreplaced_count());
    if active > desired {
        stop_pods(state, now, observed, usize::try_from(active - desired).unwrap_or_default(), true);
    } else if active + unreplaced < desired && !is_backing_off(state, now, observed) {
        start_pods(state, now, observed, (desired - active - unreplaced).min(BURST_PODS_MAX));
    }
}

/// True if the backoff after the last failure is not over.
fn is_backing_off(state: &mut ServerState, now: Timestamp, observed: &JobState) -> bool {
    let ends = observed.pods.iter().filter(|pod| string_at(&pod.object, "/status/phase") == "Failed").flat_map(|pod| {
        array_at(&pod.object, "/status/containerStatuses")
            .iter()
            .filter_map(|status| string_at(status, "/state/terminated/finishedAt").parse::<Timestamp>().ok())
            .collect::<Vec<_>>()
    });
    let Some(last) = ends.max() else { return false };
    let failures = u32::try_from(number(&observed.job, "/status/failed").saturating_sub(1)).unwrap_or_default();
    let factor = 2_i32.checked_pow(failures.min(10)).unwrap_or(i32::MAX);
    let due = add_duration(last, BACK_OFF.checked_mul(factor).unwrap_or(BACK_OFF_MAX).min(BACK_OFF_MAX));
    if due <= now {
        return false;
    }
    let task = Task::Reconcile(Workload::Job, observed.key.clone());
    state.schedule_after(now, due.duration_since(now), task);
    true
}

fn start_pods(state: &mut ServerState, now: Timestamp, observed: &JobState, count: i64) {
    let done = parse_indexes(string_at(&observed.job, "/status/completedIndexes"));
    let index_of = |pod: &&OwnedObject| pod.object["metadata"]["annotations"].get(INDEX)?.as_str()?.parse::<i64>().ok();
    let active_indexes: Vec<i64> = observed.active().iter().filter_map(index_of).collect();
    let free = (0..observed.completions().unwrap_or(i64::MAX))
        .filter(|index| !done.contains(index) && !active_indexes.contains(index));
    let namespace = string_at(&observed.job, "/metadata/namespace");
    for index in free.take(usize::try_from(count).unwrap_or_default()) {
        let pod = build_job_pod(&observed.job, observed.is_indexed().then_some(index));
        match create_object(state, now, CONTROLLER, ("", "pods"), namespace, pod) {
            Ok(pod) => {
                let message = format!("Created pod: {}", name(&pod));
                record_event(state, now, CONTROLLER, &observed.job, ("Normal", "SuccessfulCreate"), &message);
            }
            Err(error) => {
                let message = format!("Error creating: {}", error_message(&error));
                record_event(state, now, CONTROLLER, &observed.job, ("Warning", "FailedCreate"), &message);
                let task = Task::Reconcile(Workload::Job, observed.key.clone());
                return state.schedule_after(now, CREATE_RETRY_DELAY, task);
            }
        }
    }
}

/// Deletes active pods. Released ones are not counted as failed.
fn stop_pods(state: &mut ServerState, now: Timestamp, observed: &JobState, count: usize, releases: bool) {
    let mut active = observed.active();
    active.sort_by(|one, other| compare_deletion_order(&one.object, &other.object));
    for pod in active.into_iter().take(count) {
        if releases {
            release_pod(state, now, &pod.key, &pod.object);
        }
        delete_object(state, now, CONTROLLER, &pod.key);
        let message = format!("Deleted pod: {}", pod.key.name);
        record_event(state, now, CONTROLLER, &observed.job, ("Normal", "SuccessfulDelete"), &message);
    }
}

/// Decides the end of a job, and ends it once none of its pods is being deleted any more.
fn end_job(state: &mut ServerState, now: Timestamp, observed: &mut JobState, end: &JobEnd) {
    let timestamp = format_timestamp(now);
    set_condition(&mut observed.job, &timestamp, (end.decision(), true), &end.reason, &end.message);
    if observed.terminating_count() > 0 {
        return;
    }
    set_condition(&mut observed.job, &timestamp, (end.condition(), true), &end.reason, &end.message);
    if end.succeeds {
        observed.job["status"]["completionTime"] = json!(timestamp);
        record_event(state, now, CONTROLLER, &observed.job, ("Normal", "Completed"), "Job completed");
    } else {
        record_event(state, now, CONTROLLER, &observed.job, ("Warning", end.reason.as_str()), &end.message);
    }
}

fn update_job_status(state: &mut ServerState, now: Timestamp, observed: &mut JobState) {
    let pods = claim_objects(state, now, CONTROLLER, &observed.job, ("", "pods"));
    let count = |counts: &dyn Fn(&Value) -> bool| {
        i64::try_from(pods.iter().filter(|pod| counts(&pod.object)).count()).unwrap_or(i64::MAX)
    };
    let status = &mut observed.job["status"];
    set_count(status, "active", count(&is_active));
    status["ready"] = json!(count(&|pod| is_active(pod) && is_ready(pod)));
    status["terminating"] = json!(count(&|pod| is_deleting(pod) && !has_ended(pod)));
    status["uncountedTerminatedPods"] = json!({});
    let updated_object = observed.job.clone();
    replace_status(state, now, (CONTROLLER, MANAGER), &observed.key, &updated_object);
}

/// Deletes a finished job when its time to live is over.
fn expire_job(state: &mut ServerState, now: Timestamp, observed: &JobState) {
    let Some(seconds) = observed.job.pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64) else { return };
    let finished = array_at(&observed.job, "/status/conditions")
        .iter()
        .filter(|condition| matches!(string_at(condition, "/type"), "Complete" | "Failed"))
        .find_map(|condition| string_at(condition, "/lastTransitionTime").parse::<Timestamp>().ok());
    let due = add_duration(finished.unwrap_or(now), SignedDuration::from_secs(seconds));
    if due > now {
        let task = Task::Reconcile(Workload::Job, observed.key.clone());
        return state.schedule_after(now, due.duration_since(now), task);
    }
    let attribution = Attribution::controller("ttl-after-finished-controller", Verb::Delete);
    delete_stored(state, now, &attribution, &observed.key, Propagation::Foreground);
}

/// Returns a pod of a job, with a completion index if the job is indexed.
fn build_job_pod(job: &Value, index: Option<i64>) -> Value {
    let mut pod = pod_from(&job["spec"]["template"], job);
    let mut pod_finalizers = finalizers(&pod);
    pod_finalizers.push(TRACKING);
    let pod_finalizers: Vec<String> = pod_finalizers.into_iter().map(str::to_owned).collect();
    pod["metadata"]["finalizers"] = json!(pod_finalizers);
    if let Some(index) = index {
        pod["metadata"]["generateName"] = json!(format!("{}-{index}-", name(job)));
        pod["metadata"]["annotations"][INDEX] = json!(index.to_string());
        pod["metadata"]["labels"][INDEX] = json!(index.to_string());
        pod["spec"]["hostname"] = json!(format!("{}-{index}", name(job)));
        let source = json!({"fieldRef": {"fieldPath": format!("metadata.labels['{INDEX}']")}});
        for list in ["initContainers", "containers"] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let known = array_at(container, "/env").iter().any(|known| known["name"] == INDEX_VARIABLE);
                if !known {
                    push(container, "env", json!({"name": INDEX_VARIABLE, "valueFrom": source}));
                }
            }
        }
    }
    pod
}
