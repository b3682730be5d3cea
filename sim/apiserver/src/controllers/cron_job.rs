//! The CronJob controller: creates a job at each scheduled time.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cron_schedule::CronSchedule;
use super::job_status::is_finished;
use super::owned_objects::OwnedObject;
use super::writes::{
    MANAGER, create_object, delete_object, error_message, is_already_exists, is_condition_true, record_event,
    replace_status,
};
use crate::object::fields::{add_duration, array_at, format_timestamp, is_deleting, name, string_at, uid};
use crate::object::key::{StoredKey, builtin_key};
use crate::object::owners::{controller_of, controller_reference};
use crate::state::schedule::{Task, Workload};
use crate::state::server_state::ServerState;
use crate::storage::store::Store;

const CONTROLLER: &str = "cronjob-controller";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// Age of the oldest missed start that is still made up for.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(24 * 31);

pub(crate) fn reconcile_cron_job(state: &mut ServerState, now: Timestamp, key: &StoredKey) {
    let Some(live) = state.store.find_key(key).cloned() else { return };
    let jobs = list_jobs(&state.store, &live);
    let mut updated_object = Value::clone(&live);
    update_active_jobs(state, now, &mut updated_object, &jobs);
    if !is_deleting(&live) && live.pointer("/spec/suspend") != Some(&json!(true)) {
        start_due_job(state, now, key, &mut updated_object);
    }
    replace_status(state, now, (CONTROLLER, MANAGER), key, &updated_object);
    if !is_deleting(&live) {
        delete_old_jobs(state, now, &live, &jobs);
    }
}

fn list_jobs(store: &Store, owner: &Value) -> Vec<OwnedObject> {
    let in_namespace = store.in_namespace("batch", "jobs", string_at(owner, "/metadata/namespace"));
    let owned = in_namespace.filter(|entry| {
        controller_of(&entry.object).is_some_and(|reference| string_at(reference, "/uid") == uid(owner))
    });
    owned.map(|entry| OwnedObject { key: entry.key.clone(), object: entry.object.object() }).collect()
}

/// Starts a due job, and schedules the next reconciliation.
fn start_due_job(state: &mut ServerState, now: Timestamp, key: &StoredKey, cron: &mut Value) {
    let zone = string_at(cron, "/spec/timeZone");
    if !matches!(zone, "" | "UTC" | "Etc/UTC") {
        let message = format!("invalid timeZone: {zone:?}: this server supports UTC only");
        return record_event(state, now, CONTROLLER, &cron.clone(), ("Warning", "UnknownTimeZone"), &message);
    }
    let schedule = match CronSchedule::parse(string_at(cron, "/spec/schedule")) {
        Ok(schedule) => schedule,
        Err(error) => {
            let message = format!("unparseable schedule: {:?} : {error}", string_at(cron, "/spec/schedule"));
            return record_event(state, now, CONTROLLER, &cron.clone(), ("Warning", "UnparseableSchedule"), &message);
        }
    };
    let since = ["/status/lastScheduleTime", "/metadata/creationTimestamp"];
    let since = since.iter().find_map(|pointer| string_at(cron, pointer).parse::<Timestamp>().ok()).unwrap_or(now);
    let deadline = cron.pointer("/spec/startingDeadlineSeconds").and_then(Value::as_i64);
    let max_age = deadline.map_or(LOOK_BACK, SignedDuration::from_secs).min(LOOK_BACK);
    let first = since.max(now.checked_sub(max_age).unwrap_or(since));
    if let Some(due) = schedule.last_until(first, now) {
        start_job(state, now, cron, due);
    }
    if let Some(next) = schedule.next(now) {
        let wait = add_duration(next, state.delays.cron_job).duration_since(now);
        state.schedule_after(now, wait, Task::Reconcile(Workload::CronJob, key.clone()));
    }
}

fn start_job(state: &mut ServerState, now: Timestamp, cron: &mut Value, due: Timestamp) {
    let namespace = string_at(cron, "/metadata/namespace").to_owned();
    let active = array_at(cron, "/status/active").to_vec();
    match string_at(cron, "/spec/concurrencyPolicy") {
        "Forbid" if !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            return record_event(state, now, CONTROLLER, &cron.clone(), ("Normal", "JobAlreadyActive"), message);
        }
        "Replace" => {
            for reference in &active {
                let job = builtin_key("batch", "Job", "jobs", Some(&namespace), string_at(reference, "/name"));
                delete_object(state, now, CONTROLLER, &job);
                let message = format!("Deleted job {}", job.name);
                record_event(state, now, CONTROLLER, &cron.clone(), ("Normal", "SuccessfulDelete"), &message);
            }
            cron["status"].as_object_mut().into_iter().for_each(|status| drop(status.remove("active")));
        }
        _ => {}
    }
    let job = build_job(cron, due);
    match create_object(state, now, CONTROLLER, ("batch", "jobs"), &namespace, job) {
        Ok(job) => {
            let message = format!("Created job {}", name(&job));
            record_event(state, now, CONTROLLER, &cron.clone(), ("Normal", "SuccessfulCreate"), &message);
            let mut active = array_at(cron, "/status/active").to_vec();
            active.push(json!({
                "apiVersion": "batch/v1", "kind": "Job", "name": name(&job), "namespace": namespace,
                "uid": uid(&job), "resourceVersion": job["metadata"]["resourceVersion"],
            }));
            cron["status"]["active"] = json!(active);
            cron["status"]["lastScheduleTime"] = json!(format_timestamp(due));
        }
        Err(error) if is_already_exists(&error) => {}
        Err(error) => {
            let message = format!("Error creating job: {}", error_message(&error));
            record_event(state, now, CONTROLLER, &cron.clone(), ("Warning", "FailedCreate"), &message);
        }
    }
}

/// Deletes the oldest finished jobs beyond the history limits.
fn delete_old_jobs(state: &mut ServerState, now: Timestamp, cron: &Value, jobs: &[OwnedObject]) {
    let limits = [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)];
    for (condition_type, field, default) in limits {
        let limit = cron.pointer(&format!("/spec/{field}")).and_then(Value::as_u64).unwrap_or(default);
        let mut ended: Vec<&OwnedObject> =
            jobs.iter().filter(|job| is_condition_true(&job.object, condition_type)).collect();
        ended.sort_by_key(|job| (string_at(&job.object, "/status/startTime").to_owned(), job.key.name.clone()));
        let excess = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for job in ended.into_iter().take(excess).filter(|job| !is_deleting(&job.object)) {
            delete_object(state, now, CONTROLLER, &job.key);
            let message = format!("Deleted job {}", job.key.name);
            record_event(state, now, CONTROLLER, cron, ("Normal", "SuccessfulDelete"), &message);
        }
    }
}

/// Updates the list of active jobs and the time of the last success, and records which jobs are no longer active.
fn update_active_jobs(state: &mut ServerState, now: Timestamp, cron: &mut Value, jobs: &[OwnedObject]) {
    let mut active = Vec::new();
    for reference in array_at(cron, "/status/active") {
        let job = jobs.iter().find(|job| uid(&job.object) == string_at(reference, "/uid"));
        let (reason, message) = match job {
            Some(job) if !is_finished(&job.object) => {
                active.push(reference.clone());
                continue;
            }
            Some(job) => {
                let end = if is_condition_true(&job.object, "Complete") { "Complete" } else { "Failed" };
                ("SawCompletedJob", format!("Saw completed job: {}, condition: {end}", job.key.name))
            }
            None => ("MissingJob", format!("Active job went missing: {}", string_at(reference, "/name"))),
        };
        record_event(state, now, CONTROLLER, cron, ("Normal", reason), &message);
    }
    if let (true, Some(status)) = (active.is_empty(), cron["status"].as_object_mut()) {
        status.remove("active");
    } else {
        cron["status"]["active"] = json!(active);
    }
    let completed = jobs.iter().filter(|job| is_condition_true(&job.object, "Complete"));
    let last = completed.map(|job| string_at(&job.object, "/status/completionTime")).max().unwrap_or_default();
    if last > string_at(cron, "/status/lastSuccessfulTime") {
        cron["status"]["lastSuccessfulTime"] = json!(last);
    }
}

/// Returns the job for a scheduled time. Its name contains the time, so that there is one job per time.
fn build_job(cron: &Value, due: Timestamp) -> Value {
    let template = &cron["spec"]["jobTemplate"];
    let mut annotations = template.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({}));
    annotations[SCHEDULED] = json!(format_timestamp(due));
    json!({
        "metadata": {
            "name": format!("{}-{}", name(cron), due.as_second() / 60), "annotations": annotations,
            "labels": template.pointer("/metadata/labels"), "ownerReferences": [controller_reference(cron)],
        },
        "spec": template["spec"],
    })
}
