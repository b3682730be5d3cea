//! Jobs: pods until enough of them have succeeded, or too many have failed.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::job_status::{conclude, indexes, is_finished, read_indexes, set_condition};
use super::owned_objects::{Owned, by_worth, has_ended, is_active, is_ready};
use super::writes::{MANAGER, number, set_count, words};
use crate::object::fields::{finalizers, is_deleting, later, list, name, set_finalizers, stamp, text};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::state::schedule::{Task, Workload};
use crate::storage::journal::Verb;
use crate::verbs::Propagation;

const CONTROLLER: &str = "job-controller";
/// Keeps a pod until it was counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How long after a failure the next pod is made; doubled with each failure.
const BACK_OFF: SignedDuration = SignedDuration::from_secs(10);
const BACK_OFF_MAX: SignedDuration = SignedDuration::from_secs(600);
/// How many pods are made at one look.
const BURST_PODS_MAX: i64 = 500;
/// How long until a pod that was refused is made again.
const CREATE_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// A job at one look, with its status as it will be.
struct Look {
    key: StoredKey,
    job: Value,
    pods: Vec<Owned>,
}

impl Look {
    fn suspended(&self) -> bool {
        self.job.pointer("/spec/suspend") == Some(&json!(true))
    }

    fn indexed(&self) -> bool {
        text(&self.job, "/spec/completionMode") == "Indexed"
    }

    fn completions(&self) -> Option<i64> {
        self.job.pointer("/spec/completions").and_then(Value::as_i64)
    }

    fn active(&self) -> Vec<&Owned> {
        self.pods.iter().filter(|pod| is_active(&pod.object)).collect()
    }

    fn active_count(&self) -> i64 {
        i64::try_from(self.active().len()).unwrap_or(i64::MAX)
    }

    /// How many pods should run now.
    fn wanted(&self) -> i64 {
        let parallel = self.job.pointer("/spec/parallelism").and_then(Value::as_i64).unwrap_or(1);
        let succeeded = number(&self.job, "/status/succeeded");
        match self.completions() {
            Some(completions) => parallel.min(completions - succeeded).max(0),
            // As soon as one has succeeded the others may end, and none is added.
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
        let mut look = Look { key: key.clone(), job: Value::clone(&live), pods };
        self.count_ended(now, &mut look);
        if is_finished(&live) {
            return self.expire_job(now, &look);
        }
        if is_deleting(&live) {
            return;
        }
        let failure = self.failure_of(now, &look);
        match failure {
            Some((reason, message)) => {
                self.stop_pods(now, &look, usize::MAX);
                self.finish_job(now, &mut look, ("FailureTarget", "Failed"), reason, message);
            }
            None if look.is_done() => {
                self.stop_pods(now, &look, usize::MAX);
                let message = "Reached expected number of succeeded pods";
                let kinds = ("SuccessCriteriaMet", "Complete");
                self.finish_job(now, &mut look, kinds, "CompletionsReached", message);
            }
            None => self.manage_job(now, &mut look),
        }
        self.tell_job(now, &mut look);
    }

    /// Counts the pods that ended, each once, and lets them go.
    fn count_ended(&mut self, now: Timestamp, look: &mut Look) {
        let mut done = read_indexes(text(&look.job, "/status/completedIndexes"));
        for pod in &look.pods {
            let object = &pod.object;
            let over = has_ended(object) || is_deleting(object);
            if !over || !finalizers(object).contains(&TRACKING) {
                continue;
            }
            let well = text(object, "/status/phase") == "Succeeded";
            let index = object["metadata"]["annotations"].get(INDEX).and_then(Value::as_str);
            let index = index.and_then(|index| index.parse::<i64>().ok()).filter(|_| look.indexed());
            let again = well && index.is_some_and(|index| !done.insert(index));
            // Pods that a suspended job ends did not fail.
            let counts = (well || !look.suspended() || has_ended(object)) && !again;
            let field = if well { "succeeded" } else { "failed" };
            if counts {
                let count = number(&look.job, &format!("/status/{field}")) + 1;
                look.job["status"][field] = json!(count);
            }
            let mut freed = Value::clone(object);
            let left: Vec<&str> = finalizers(object).into_iter().filter(|kept| *kept != TRACKING).collect();
            set_finalizers(&mut freed, &left);
            self.write_as(now, &Authorship::controller(CONTROLLER, Verb::Patch), MANAGER, &pod.key, &freed);
            self.release_pod(now, &pod.key);
        }
        if look.indexed() && !done.is_empty() {
            look.job["status"]["completedIndexes"] = json!(indexes(&done));
        }
    }

    /// A pod that only waited for its finalizer is gone when nothing runs in it any more.
    fn release_pod(&mut self, now: Timestamp, key: &StoredKey) {
        let Some(pod) = self.stored(key).filter(|pod| is_deleting(pod) && finalizers(pod).is_empty()) else { return };
        let idle = text(pod, "/spec/nodeName").is_empty() || number(pod, "/metadata/deletionGracePeriodSeconds") == 0;
        if idle {
            self.expunge(now, &Authorship::controller(CONTROLLER, Verb::Delete), key);
        }
    }

    /// Why a job has failed.
    fn failure_of(&mut self, now: Timestamp, look: &Look) -> Option<(&'static str, &'static str)> {
        let limit = look.job.pointer("/spec/backoffLimit").and_then(Value::as_i64).unwrap_or(6);
        let restarts: i64 = look
            .active()
            .iter()
            .flat_map(|pod| list(&pod.object, "/status/containerStatuses").to_vec())
            .map(|status| number(&status, "/restartCount"))
            .sum();
        let on_failure = text(&look.job, "/spec/template/spec/restartPolicy") == "OnFailure";
        let too_often = on_failure && restarts > 0 && restarts >= limit;
        if number(&look.job, "/status/failed") > limit || too_often {
            return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        let seconds = look.job.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64)?;
        let start: Timestamp = text(&look.job, "/status/startTime").parse().ok()?;
        let end = later(start, SignedDuration::from_secs(seconds));
        if look.suspended() || end > now {
            let task = Task::Reconcile(Workload::Job, look.key.clone());
            self.schedule_after(now, end.duration_since(now).max(SignedDuration::from_secs(1)), task);
            return None;
        }
        Some(("DeadlineExceeded", "Job was active longer than specified deadline"))
    }

    /// Makes as many pods as should run, or ends those that should not.
    fn manage_job(&mut self, now: Timestamp, look: &mut Look) {
        if look.suspended() {
            self.stop_pods(now, look, usize::MAX);
            if set_condition(&mut look.job, &stamp(now), ("Suspended", true), "JobSuspended", "Job suspended") {
                look.job["status"].as_object_mut().into_iter().for_each(|status| drop(status.remove("startTime")));
                self.tell(now, CONTROLLER, &look.job, ("Normal", "Suspended"), "Job suspended");
            }
            return;
        }
        let was_suspended = super::writes::holds(&look.job, "Suspended");
        if was_suspended && set_condition(&mut look.job, &stamp(now), ("Suspended", false), "JobResumed", "Job resumed")
        {
            self.tell(now, CONTROLLER, &look.job, ("Normal", "Resumed"), "Job resumed");
        }
        if look.job.pointer("/status/startTime").is_none() {
            look.job["status"]["startTime"] = json!(stamp(now));
            // A deadline counts from here.
            let task = Task::Reconcile(Workload::Job, look.key.clone());
            self.schedule_after(now, self.lags.job, task);
        }
        let (wanted, active) = (look.wanted(), look.active_count());
        if active > wanted {
            self.stop_pods(now, look, usize::try_from(active - wanted).unwrap_or_default());
        } else if active < wanted && !self.is_pausing(now, look) {
            self.start_pods(now, look, (wanted - active).min(BURST_PODS_MAX));
        }
    }

    /// Whether the last failure is too recent.
    fn is_pausing(&mut self, now: Timestamp, look: &Look) -> bool {
        let ends = look.pods.iter().filter(|pod| text(&pod.object, "/status/phase") == "Failed").flat_map(|pod| {
            list(&pod.object, "/status/containerStatuses")
                .iter()
                .filter_map(|status| text(status, "/state/terminated/finishedAt").parse::<Timestamp>().ok())
                .collect::<Vec<_>>()
        });
        let Some(last) = ends.max() else { return false };
        let failures = u32::try_from(number(&look.job, "/status/failed").saturating_sub(1)).unwrap_or_default();
        let factor = 2_i32.checked_pow(failures.min(10)).unwrap_or(i32::MAX);
        let due = later(last, BACK_OFF.checked_mul(factor).unwrap_or(BACK_OFF_MAX).min(BACK_OFF_MAX));
        if due <= now {
            return false;
        }
        let task = Task::Reconcile(Workload::Job, look.key.clone());
        self.schedule_after(now, due.duration_since(now), task);
        true
    }

    fn start_pods(&mut self, now: Timestamp, look: &Look, count: i64) {
        let done = read_indexes(text(&look.job, "/status/completedIndexes"));
        let index_of = |pod: &&Owned| pod.object["metadata"]["annotations"].get(INDEX)?.as_str()?.parse::<i64>().ok();
        let taken: Vec<i64> = look.active().iter().filter_map(index_of).collect();
        let free =
            (0..look.completions().unwrap_or(i64::MAX)).filter(|index| !done.contains(index) && !taken.contains(index));
        let namespace = text(&look.job, "/metadata/namespace");
        for index in free.take(usize::try_from(count).unwrap_or_default()) {
            let pod = job_pod(&look.job, look.indexed().then_some(index));
            match self.make(now, CONTROLLER, ("", "pods"), namespace, pod) {
                Ok(pod) => {
                    let message = format!("Created pod: {}", name(&pod));
                    self.tell(now, CONTROLLER, &look.job, ("Normal", "SuccessfulCreate"), &message);
                }
                Err(error) => {
                    let message = format!("Error creating: {}", words(&error));
                    self.tell(now, CONTROLLER, &look.job, ("Warning", "FailedCreate"), &message);
                    let task = Task::Reconcile(Workload::Job, look.key.clone());
                    return self.schedule_after(now, CREATE_AGAIN, task);
                }
            }
        }
    }

    fn stop_pods(&mut self, now: Timestamp, look: &Look, count: usize) {
        let mut active = look.active();
        active.sort_by(|one, other| by_worth(&one.object, &other.object));
        for pod in active.into_iter().take(count) {
            self.discard(now, CONTROLLER, &pod.key);
            let message = format!("Deleted pod: {}", pod.key.name);
            self.tell(now, CONTROLLER, &look.job, ("Normal", "SuccessfulDelete"), &message);
        }
    }

    fn finish_job(&mut self, now: Timestamp, look: &mut Look, kinds: (&str, &str), reason: &str, message: &str) {
        conclude(&mut look.job, &stamp(now), kinds, reason, message);
        let (kind, reason, message) = match kinds.1 {
            "Complete" => ("Normal", "Completed", "Job completed"),
            _ => ("Warning", reason, message),
        };
        self.tell(now, CONTROLLER, &look.job, (kind, reason), message);
    }

    fn tell_job(&mut self, now: Timestamp, look: &mut Look) {
        let pods = self.claim(now, CONTROLLER, &look.job, ("", "pods"));
        let count = |counts: &dyn Fn(&Value) -> bool| {
            i64::try_from(pods.iter().filter(|pod| counts(&pod.object)).count()).unwrap_or(i64::MAX)
        };
        let status = &mut look.job["status"];
        set_count(status, "active", count(&is_active));
        status["ready"] = json!(count(&|pod| is_active(pod) && is_ready(pod)));
        status["terminating"] = json!(count(&|pod| is_deleting(pod) && !has_ended(pod)));
        status["uncountedTerminatedPods"] = json!({});
        let told = look.job.clone();
        self.replace_status(now, (CONTROLLER, MANAGER), &look.key, &told);
    }

    /// Deletes a finished job when its time is over.
    fn expire_job(&mut self, now: Timestamp, look: &Look) {
        let Some(seconds) = look.job.pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64) else { return };
        let finished = list(&look.job, "/status/conditions")
            .iter()
            .filter(|condition| matches!(text(condition, "/type"), "Complete" | "Failed"))
            .find_map(|condition| text(condition, "/lastTransitionTime").parse::<Timestamp>().ok());
        let due = later(finished.unwrap_or(now), SignedDuration::from_secs(seconds));
        if due > now {
            let task = Task::Reconcile(Workload::Job, look.key.clone());
            return self.schedule_after(now, due.duration_since(now), task);
        }
        let who = Authorship::controller("ttl-after-finished-controller", Verb::Delete);
        self.delete_key(now, &who, &look.key, Propagation::Foreground);
    }
}

/// A pod of a job, perhaps with a number.
fn job_pod(job: &Value, index: Option<i64>) -> Value {
    let mut pod = ApiServer::pod_from(&job["spec"]["template"], job);
    let mut kept = finalizers(&pod);
    kept.push(TRACKING);
    let kept: Vec<String> = kept.into_iter().map(str::to_owned).collect();
    pod["metadata"]["finalizers"] = json!(kept);
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
