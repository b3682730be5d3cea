//! Containers of a pod that run.

use serde_json::Value;

use super::fields::{array_at, string_at, value_at};

const STATUS_LISTS: [&str; 3] =
    ["/status/containerStatuses", "/status/initContainerStatuses", "/status/ephemeralContainerStatuses"];

/// Returns the start time of a container that runs.
pub(crate) fn find_container_start<'a>(pod: &'a Value, container: &str) -> Option<&'a str> {
    let mut all = STATUS_LISTS.into_iter().flat_map(|list| array_at(pod, list));
    let status = all.find(|status| string_at(status, "/name") == container)?;
    value_at(status, "/state/running").map(|running| string_at(running, "/startedAt"))
}

/// Returns the start time of a pod that runs.
pub(crate) fn find_pod_start(pod: &Value) -> Option<&str> {
    (string_at(pod, "/status/phase") == "Running").then(|| string_at(pod, "/status/startTime"))
}
