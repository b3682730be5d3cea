//! The Job controller: creates pods until enough have succeeded or too many have failed.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::job_status::{finish, format_indexes, is_finished, parse_indexes, set_condition};
use super::owned_objects::{OwnedObject, compare_deletion_order, has_ended, is_active, is_ready};
use super::writes::{MANAGER, error_message, number, set_count};
use crate::object::fields::{finalizers, is_deleting, later, list, name, set_finalizers, stamp, text};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::state::schedule::{Task, Workload};
use crate::storage::journal::Verb;
use crate::verbs::Propagation;

const CONTROLLER: &str = "job-controller";
/// Finalizer that keeps a pod until it was counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
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
        text(&self.job, "/spec/completionMode") == "Indexed"
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

    fn is_done(&self) -> bool {
        let succeeded = number(&self.job, "/status/succeeded");
        match self.completions() {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0 && self.active().is_empty(),
        }
    }
}

impl ApiServer {
    pub(super) fn reconcile_job(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(live) = self.stored(key).cloned() else { return };
        let pods = self.claim(now, CONTROLLER, &live, ("", "pods"));
        let mut state = JobState { key: key.clone(), job: Value::clone(&live), pods };
        self.count_ended(now, &mut state);
        if is_finished(&live) {
            return self.expire_job(now, &state);
        }
        if is_deleting(&live) {
            return;
        }
        let failure = self.find_failure(now, &state);
        match failure {
            Some((reason, message)) => {
                self.stop_pods(now, &state, usize::MAX);
                self.finish_job(now, &mut state, ("FailureTarget", "Failed"), reason, message);
            }
            None if state.is_done() => {
                self.stop_pods(now, &state, usize::MAX);
                let message = "Reached expected number of succeeded pods";
                let conditions = ("SuccessCriteriaMet", "Complete");
                self.finish_job(now, &mut state, conditions, "CompletionsReached", message);
            }
            None => self.sync_job_pods(now, &mut state),
        }
        self.update_job_status(now, &mut state);
    }

    /// Counts the pods that ended, each once, and removes their tracking finalizer.
    fn count_ended(&mut self, now: Timestamp, state: &mut JobState) {
        let mut done = parse_indexes(text(&state.job, "/status/completedIndexes"));
        for pod in &state.pods {
            let object = &pod.object;
            let is_over = has_ended(object) || is_deleting(object);
            if !is_over || !finalizers(object).contains(&TRACKING) {
                continue;
            }
            let has_succeeded = text(object, "/status/phase") == "Succeeded";
            let index = object["metadata"]["annotations"].get(INDEX).and_then(Value::as_str);
            let index = index.and_then(|index| index.parse::<i64>().ok()).filter(|_| state.is_indexed());
            let is_repeated = has_succeeded && index.is_some_and(|index| !done.insert(index));
            // Pods that are deleted because the job is suspended did not fail.
            let is_counted = (has_succeeded || !state.is_suspended() || has_ended(object)) && !is_repeated;
            let field = if has_succeeded { "succeeded" } else { "failed" };
            if is_counted {
                let count = number(&state.job, &format!("/status/{field}")) + 1;
                state.job["status"][field] = json!(count);
            }
            let mut released = Value::clone(object);
            let remaining: Vec<&str> =
                finalizers(object).into_iter().filter(|finalizer| *finalizer != TRACKING).collect();
            set_finalizers(&mut released, &remaining);
            self.write_as(now, &Authorship::controller(CONTROLLER, Verb::Patch), MANAGER, &pod.key, &released);
            self.remove_released_pod(now, &pod.key);
        }
        if state.is_indexed() && !done.is_empty() {
            state.job["status"]["completedIndexes"] = json!(format_indexes(&done));
        }
    }

    /// Removes a pod that is being deleted, has no finalizer left and no running containers.
    fn remove_released_pod(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(pod) = self.stored(key).filter(|pod| is_deleting(pod) && finalizers(pod).is_empty()) else { return };
        let is_idle =
            text(pod, "/spec/nodeName").is_empty() || number(pod, "/metadata/deletionGracePeriodSeconds") == 0;
        if is_idle {
            self.expunge(now, &Authorship::controller(CONTROLLER, Verb::Delete), key);
        }
    }

    /// Returns reason and message if a job has failed.
    fn find_failure(&mut self, now: Timestamp, state: &JobState) -> Option<(&'static str, &'static str)> {
        let limit = state.job.pointer("/spec/backoffLimit").and_then(Value::as_i64).unwrap_or(6);
        let restarts: i64 = state
            .active()
            .iter()
            .flat_map(|pod| list(&pod.object, "/status/containerStatuses").to_vec())
            .map(|status| number(&status, "/restartCount"))
            .sum();
        let restarts_on_failure = text(&state.job, "/spec/template/spec/restartPolicy") == "OnFailure";
        let is_over_limit = restarts_on_failure && restarts > 0 && restarts >= limit;
        if number(&state.job, "/status/failed") > limit || is_over_limit {
            return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        let seconds = state.job.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64)?;
        let start: Timestamp = text(&state.job, "/status/startTime").parse().ok()?;
        let end = later(start, SignedDuration::from_secs(seconds));
        if state.is_suspended() || end > now {
            let task = Task::Reconcile(Workload::Job, state.key.clone());
            self.schedule_after(now, end.duration_since(now).max(SignedDuration::from_secs(1)), task);
            return None;
        }
        Some(("DeadlineExceeded", "Job was active longer than specified deadline"))
    }

    /// Creates the missing pods, or deletes the surplus ones.
    fn sync_job_pods(&mut self, now: Timestamp, state: &mut JobState) {
        if state.is_suspended() {
            self.stop_pods(now, state, usize::MAX);
            if set_condition(&mut state.job, &stamp(now), ("Suspended", true), "JobSuspended", "Job suspended") {
                state.job["status"].as_object_mut().into_iter().for_each(|status| drop(status.remove("startTime")));
                self.record_event(now, CONTROLLER, &state.job, ("Normal", "Suspended"), "Job suspended");
            }
            return;
        }
        let was_suspended = super::writes::is_condition_true(&state.job, "Suspended");
        if was_suspended
            && set_condition(&mut state.job, &stamp(now), ("Suspended", false), "JobResumed", "Job resumed")
        {
            self.record_event(now, CONTROLLER, &state.job, ("Normal", "Resumed"), "Job resumed");
        }
        if state.job.pointer("/status/startTime").is_none() {
            state.job["status"]["startTime"] = json!(stamp(now));
            // The deadline counts from this time.
            let task = Task::Reconcile(Workload::Job, state.key.clone());
            self.schedule_after(now, self.lags.job, task);
        }
        let (desired, active) = (state.desired_active(), state.active_count());
        if active > desired {
            self.stop_pods(now, state, usize::try_from(active - desired).unwrap_or_default());
        } else if active < desired && !self.is_backing_off(now, state) {
            self.start_pods(now, state, (desired - active).min(BURST_PODS_MAX));
        }
    }

    /// True if the backoff after the last failure is not over.
    fn is_backing_off(&mut self, now: Timestamp, state: &JobState) -> bool {
        let ends = state.pods.iter().filter(|pod| text(&pod.object, "/status/phase") == "Failed").flat_map(|pod| {
            list(&pod.object, "/status/containerStatuses")
                .iter()
                .filter_map(|status| text(status, "/state/terminated/finishedAt").parse::<Timestamp>().ok())
                .collect::<Vec<_>>()
        });
        let Some(last) = ends.max() else { return false };
        let failures = u32::try_from(number(&state.job, "/status/failed").saturating_sub(1)).unwrap_or_default();
        let factor = 2_i32.checked_pow(failures.min(10)).unwrap_or(i32::MAX);
        let due = later(last, BACK_OFF.checked_mul(factor).unwrap_or(BACK_OFF_MAX).min(BACK_OFF_MAX));
        if due <= now {
            return false;
        }
        let task = Task::Reconcile(Workload::Job, state.key.clone());
        self.schedule_after(now, due.duration_since(now), task);
        true
    }

    fn start_pods(&mut self, now: Timestamp, state: &JobState, count: i64) {
        let done = parse_indexes(text(&state.job, "/status/completedIndexes"));
        let index_of =
            |pod: &&OwnedObject| pod.object["metadata"]["annotations"].get(INDEX)?.as_str()?.parse::<i64>().ok();
        let active_indexes: Vec<i64> = state.active().iter().filter_map(index_of).collect();
        let free = (0..state.completions().unwrap_or(i64::MAX))
            .filter(|index| !done.contains(index) && !active_indexes.contains(index));
        let namespace = text(&state.job, "/metadata/namespace");
        for index in free.take(usize::try_from(count).unwrap_or_default()) {
            let pod = build_job_pod(&state.job, state.is_indexed().then_some(index));
            match self.create_object(now, CONTROLLER, ("", "pods"), namespace, pod) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    self.record_event(now, CONTROLLER, &state.job, ("Normal", "SuccessfulCreate"), &message);
                }
                Err(error) => {
                    let message = format!("Error creating: {}", error_message(&error));
                    self.record_event(now, CONTROLLER, &state.job, ("Warning", "FailedCreate"), &message);
                    let task = Task::Reconcile(Workload::Job, state.key.clone());
                    return self.schedule_after(now, CREATE_RETRY_DELAY, task);
                }
            }
        }
    }

    fn stop_pods(&mut self, now: Timestamp, state: &JobState, count: usize) {
        let mut active = state.active();
        active.sort_by(|one, other| compare_deletion_order(&one.object, &other.object));
        for pod in active.into_iter().take(count) {
            self.delete_object(now, CONTROLLER, &pod.key);
            let message = format!("Deleted pod: {}", pod.key.name);
            self.record_event(now, CONTROLLER, &state.job, ("Normal", "SuccessfulDelete"), &message);
        }
    }

    fn finish_job(
        &mut self,
        now: Timestamp,
        state: &mut JobState,
        conditions: (&str, &str),
        reason: &str,
        message: &str,
    ) {
        finish(&mut state.job, &stamp(now), conditions, reason, message);
        let (event_type, reason, message) = match conditions.1 {
            "Complete" => ("Normal", "Completed", "Job completed"),
            _ => ("Warning", reason, message),
        };
        self.record_event(now, CONTROLLER, &state.job, (event_type, reason), message);
    }

    fn update_job_status(&mut self, now: Timestamp, state: &mut JobState) {
        let pods = self.claim(now, CONTROLLER, &state.job, ("", "pods"));
        let count = |counts: &dyn Fn(&Value) -> bool| {
            i64::try_from(pods.iter().filter(|pod| counts(&pod.object)).count()).unwrap_or(i64::MAX)
        };
        let status = &mut state.job["status"];
        set_count(status, "active", count(&is_active));
        status["ready"] = json!(count(&|pod| is_active(pod) && is_ready(pod)));
        status["terminating"] = json!(count(&|pod| is_deleting(pod) && !has_ended(pod)));
        status["uncountedTerminatedPods"] = json!({});
        let updated_object = state.job.clone();
        self.replace_status(now, (CONTROLLER, MANAGER), &state.key, &updated_object);
    }

    /// Deletes a finished job when its time to live is over.
    fn expire_job(&mut self, now: Timestamp, state: &JobState) {
        let Some(seconds) = state.job.pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64) else { return };
        let finished = list(&state.job, "/status/conditions")
            .iter()
            .filter(|condition| matches!(text(condition, "/type"), "Complete" | "Failed"))
            .find_map(|condition| text(condition, "/lastTransitionTime").parse::<Timestamp>().ok());
        let due = later(finished.unwrap_or(now), SignedDuration::from_secs(seconds));
        if due > now {
            let task = Task::Reconcile(Workload::Job, state.key.clone());
            return self.schedule_after(now, due.duration_since(now), task);
        }
        let who = Authorship::controller("ttl-after-finished-controller", Verb::Delete);
        self.delete_key(now, &who, &state.key, Propagation::Foreground);
    }
}

/// Returns a pod of a job, with a completion index if the job is indexed.
fn build_job_pod(job: &Value, index: Option<i64>) -> Value {
    let mut pod = ApiServer::pod_from(&job["spec"]["template"], job);
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
        let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if container.get("env").is_none() {
                container["env"] = json!([]);
            }
            let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": source});
            container["env"].as_array_mut().into_iter().for_each(|all| all.push(variable.clone()));
        }
    }
    pod
}
