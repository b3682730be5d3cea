//! Jobs, which are ready when they are complete, and CronJobs.

use crate::conditions::Conditions;
use crate::health::{Health, HealthState};
use crate::object::Object;

pub(super) fn assess_job(object: Object<'_>) -> Health {
    let find_true = |name| object.condition(name).filter(|condition| condition.is_true());
    if let Some(condition) = find_true("Failed").or_else(|| find_true("FailureTarget")) {
        return condition.to_health(HealthState::Failing, "Failed");
    }
    let succeeded = object.count(&["status", "succeeded"]);
    if find_true("Complete").is_some() {
        return Health::ready("Completed", format!("{succeeded} pods succeeded"));
    }
    if find_true("Suspended").is_some() || object.flag(&["spec", "suspend"]) {
        return Health::progressing("Suspended", "suspended: it starts no pods");
    }
    if object.at(&["status", "startTime"]).is_none() {
        return Health::progressing("NotStarted", "its controller has not started it yet");
    }
    let (active, failed) = (object.count(&["status", "active"]), object.count(&["status", "failed"]));
    // Without `completions`, one successful pod is enough.
    let desired = object.number(&["spec", "completions"]).unwrap_or(1);
    let message = format!("{succeeded} of {desired} pods succeeded, {active} run, {failed} failed");
    Health::progressing("Running", message)
}

/// A CronJob is ready as soon as it exists; its Jobs are assessed on their own.
pub(super) fn assess_cron_job(object: Object<'_>) -> Health {
    if object.flag(&["spec", "suspend"]) {
        return Health::ready("Suspended", "suspended: it starts no jobs");
    }
    match object.text(&["status", "lastScheduleTime"]) {
        Some(time) => Health::ready("Scheduled", format!("last started a job at {time}")),
        None => Health::ready("Scheduled", "it has not started a job yet"),
    }
}
