//! Logs of pods: the text of a rule, or a line that says which container started.

use serde_json::Value;

use super::read::find_live;
use super::resource_request::ResourceRequest;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::fields::{array_at, string_at, value_at};
use crate::state::server_state::ServerState;

/// Returns the log of one container of a pod.
pub(crate) fn read_log(state: &ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let pod = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let container = choose_container(request, &pod)?;
    if string_at(&pod, "/spec/nodeName").is_empty() {
        return Ok(Response::text(200, ""));
    }
    let name = string_at(container, "/name");
    let statuses = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let status = statuses.into_iter().flat_map(|list| array_at(&pod, list)).find(|status| status["name"] == name);
    let Some(started) = status.and_then(started_at) else {
        let reason = status.map_or("ContainerCreating", |status| string_at(status, "/state/waiting/reason"));
        let message = format!("container {name:?} in pod {:?} is waiting to start: {reason}", request.name);
        return Err(ApiError::bad_request(message));
    };
    let text = state.workloads.log_of(&pod, container).unwrap_or_else(|| format!("{name} started\n"));
    Ok(Response::text(200, &select_lines(request, &text, started)))
}

/// Returns the container that a request names, or the only one.
fn choose_container<'a>(request: &ResourceRequest<'_>, pod: &'a Value) -> Result<&'a Value, ApiError> {
    let containers = || {
        ["/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"]
            .into_iter()
            .flat_map(|list| array_at(pod, list))
    };
    if let Some(name) = request.http.parameter("container").filter(|name| !name.is_empty()) {
        let invalid = || ApiError::bad_request(format!("container {name} is not valid for pod {}", request.name));
        return containers().find(|container| string_at(container, "/name") == name).ok_or_else(invalid);
    }
    if let ([only], 1) = (array_at(pod, "/spec/containers"), containers().count()) {
        return Ok(only);
    }
    let names =
        |list: &str| array_at(pod, list).iter().map(|one| string_at(one, "/name")).collect::<Vec<_>>().join(" ");
    let mut choices = format!("choose one of: [{}]", names("/spec/containers"));
    if !names("/spec/initContainers").is_empty() {
        choices.push_str(&format!(" or one of the init containers: [{}]", names("/spec/initContainers")));
    }
    let message = format!("a container name must be specified for pod {}, {choices}", request.name);
    Err(ApiError::bad_request(message))
}

/// Returns the start time of a container that has started.
fn started_at(status: &Value) -> Option<&str> {
    let pointers = ["/state/running/startedAt", "/state/terminated/startedAt", "/lastState/terminated/startedAt"];
    pointers.into_iter().find_map(|pointer| value_at(status, pointer)?.as_str())
}

/// Returns the lines of a log that a request selects, each with its time if it asks for times.
fn select_lines(request: &ResourceRequest<'_>, text: &str, time: &str) -> String {
    let number = |name: &str| request.http.parameter(name).and_then(|value| value.parse::<usize>().ok());
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = number("tailLines").map_or(0, |last| lines.len().saturating_sub(last));
    let prefix = if request.http.flag("timestamps") { format!("{time} ") } else { String::new() };
    let mut selected: String = lines[first..].iter().map(|line| format!("{prefix}{line}")).collect();
    if let Some(limit) = number("limitBytes") {
        let end =
            selected.char_indices().map(|(start, one)| start + one.len_utf8()).take_while(|end| *end <= limit).last();
        selected.truncate(end.unwrap_or_default());
    }
    selected
}
