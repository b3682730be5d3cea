//! Logs of pods: the text of a rule, or a line that says which container started.

use serde_json::{Value, json};

use super::read::find_live;
use super::resource_request::ResourceRequest;
use crate::http::error::ApiError;
use crate::http::response::Response;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at, value_at};
use crate::state::server_state::ServerState;

/// Returns the log of one container of a pod.
pub(crate) fn read_log(state: &ServerState, request: &ResourceRequest<'_>) -> Result<Response, ApiError> {
    let options = LogOptions::from_query(request)?;
    let pod = find_live(&state.store, request).cloned().ok_or_else(|| request.not_found())?;
    let container = choose_container(request, &pod)?;
    if string_at(&pod, "/spec/nodeName").is_empty() {
        return Ok(Response::text(200, ""));
    }
    let name = string_at(container, "/name");
    let statuses = ["/status/containerStatuses", "/status/initContainerStatuses", "/status/ephemeralContainerStatuses"];
    let status = statuses.into_iter().flat_map(|list| array_at(&pod, list)).find(|status| status["name"] == name);
    if options.previous && status.is_none_or(|status| value_at(status, "/lastState/terminated").is_none()) {
        let message = format!("previous terminated container {name:?} in pod {:?} not found", request.name);
        return Err(ApiError::bad_request(message));
    }
    let Some(started) = status.and_then(started_at) else {
        let reason = status.map_or("ContainerCreating", |status| string_at(status, "/state/waiting/reason"));
        let message = format!("container {name:?} in pod {:?} is waiting to start: {reason}", request.name);
        return Err(ApiError::bad_request(message));
    };
    let text = state.workloads.log_of(&pod, container).unwrap_or_else(|| format!("{name} started\n"));
    Ok(Response::text(200, &select_lines(&options, &text, started)))
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
    if let [only] = array_at(pod, "/spec/containers") {
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

/// Options of a request for a log.
struct LogOptions {
    previous: bool,
    timestamps: bool,
    tail_lines: Option<usize>,
    limit_bytes: Option<usize>,
}

impl LogOptions {
    /// Reads and checks the options in the query.
    fn from_query(request: &ResourceRequest<'_>) -> Result<Self, ApiError> {
        let number = |name: &str| {
            let parse = |text: &str| {
                let invalid = |_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
                text.parse::<i64>().map_err(invalid)
            };
            request.http.parameter(name).map(parse).transpose()
        };
        let (tail_lines, limit_bytes) = (number("tailLines")?, number("limitBytes")?);
        let since_seconds = number("sinceSeconds")?;
        let bounds = [
            ("tailLines", tail_lines, 0, "must be greater than or equal to 0"),
            ("limitBytes", limit_bytes, 1, "must be greater than 0"),
            ("sinceSeconds", since_seconds, 1, "must be greater than 0"),
        ];
        let too_small = bounds.into_iter().filter_map(|(field, value, least, detail)| {
            value.filter(|value| *value < least).map(|value| FieldError::invalid(field, &json!(value), detail))
        });
        let errors: Vec<FieldError> = too_small.collect();
        if !errors.is_empty() {
            return Err(ApiError::invalid_kind("", "PodLogOptions", &request.name, &errors));
        }
        let size = |value: Option<i64>| value.and_then(|value| usize::try_from(value).ok());
        Ok(Self {
            previous: request.http.flag("previous"),
            timestamps: request.http.flag("timestamps"),
            tail_lines: size(tail_lines),
            limit_bytes: size(limit_bytes),
        })
    }
}

/// Returns the lines of a log that a request selects, each with its time if it asks for times.
fn select_lines(options: &LogOptions, text: &str, time: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = options.tail_lines.map_or(0, |last| lines.len().saturating_sub(last));
    let prefix = if options.timestamps { format!("{time} ") } else { String::new() };
    let mut selected: String = lines[first..].iter().map(|line| format!("{prefix}{line}")).collect();
    if let Some(limit) = options.limit_bytes {
        let end =
            selected.char_indices().map(|(start, one)| start + one.len_utf8()).take_while(|end| *end <= limit).last();
        selected.truncate(end.unwrap_or_default());
    }
    selected
}
