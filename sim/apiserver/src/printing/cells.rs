//! Table cells of pods, jobs, daemon sets, nodes, endpoints, autoscalers and events, as `kubectl get` prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{array_at, is_deleting, name, string_at, value_at};
use crate::printing::format::{age, selector};
use crate::printing::pod_cells::{location_cells, status_cells};

/// Largest number of printed addresses.
const ADDRESSES_MAX: usize = 3;

/// Columns of kinds that were not recorded: name, type, priority.
pub(crate) fn columns(kind: &str) -> Option<Vec<Value>> {
    let columns: &[(&str, u8)] = match kind {
        "Node" => &[
            ("Name", 0),
            ("Status", 0),
            ("Roles", 0),
            ("Age", 0),
            ("Version", 0),
            ("Internal-IP", 1),
            ("External-IP", 1),
            ("OS-Image", 1),
            ("Kernel-Version", 1),
            ("Container-Runtime", 1),
        ],
        "EndpointSlice" => &[("Name", 0), ("AddressType", 0), ("Ports", 0), ("Endpoints", 0), ("Age", 0)],
        "HorizontalPodAutoscaler" => &[
            ("Name", 0),
            ("Reference", 0),
            ("Targets", 0),
            ("MinPods", 0),
            ("MaxPods", 0),
            ("Replicas", 0),
            ("Age", 0),
        ],
        "ControllerRevision" => &[("Name", 0), ("Controller", 0), ("Revision", 0), ("Age", 0)],
        _ => return None,
    };
    let column = |(name, priority): &(&str, u8)| {
        let format = if *name == "Name" { "name" } else { "" };
        json!({"name": name, "type": "string", "format": format, "description": "", "priority": priority})
    };
    Some(columns.iter().map(column).collect())
}

/// Returns the cells of an object, if its kind is one of this file.
pub(crate) fn row(kind: &str, now: Timestamp, object: &Value) -> Option<Vec<Value>> {
    let own = json!(name(object));
    let old = json!(age(now, string_at(object, "/metadata/creationTimestamp")));
    let mut row = vec![own];
    match kind {
        "Pod" => row.extend(status_cells(object, now).into_iter().chain([old]).chain(location_cells(object))),
        "HorizontalPodAutoscaler" => row.extend(autoscaler(object).into_iter().chain([old])),
        "Job" => row.extend(job(now, object).into_iter().chain([old]).chain(template(object))),
        "CronJob" => row.extend(cron_job(now, object).into_iter().chain([old]).chain(cron_template(object))),
        "DaemonSet" => row.extend(daemon_set(object).into_iter().chain([old]).chain(template(object))),
        "Node" => return Some(node(object, &old)),
        "Endpoints" => row.extend([json!(endpoints(object)), old]),
        "EndpointSlice" => row.extend(slice(object).into_iter().chain([old])),
        "ControllerRevision" => {
            let owner = array_at(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true);
            let owner = owner.map(|owner| {
                let group = string_at(owner, "/apiVersion").split('/').next().unwrap_or_default();
                format!("{}.{group}/{}", string_at(owner, "/kind").to_lowercase(), string_at(owner, "/name"))
            });
            row.extend([json!(owner.unwrap_or_else(|| "<none>".to_owned())), object["revision"].clone(), old]);
        }
        "Event" => return Some(event(now, object)),
        _ => return None,
    }
    Some(row)
}

/// Returns the container, image and selector cells of an object with a pod template.
fn template(object: &Value) -> Vec<Value> {
    let containers = array_at(object, "/spec/template/spec/containers");
    let joined = |field: &str| json!(containers.iter().map(|one| string_at(one, field)).collect::<Vec<_>>().join(","));
    vec![joined("/name"), joined("/image"), json!(selector(object.pointer("/spec/selector")))]
}

fn cron_template(cron: &Value) -> Vec<Value> {
    let inner = json!({"spec": value_at(cron, "/spec/jobTemplate/spec")});
    template(&inner)
}

fn since(now: Timestamp, stamp: &str, otherwise: &str) -> Value {
    if stamp.is_empty() { json!(otherwise) } else { json!(age(now, stamp)) }
}

fn job(now: Timestamp, job: &Value) -> Vec<Value> {
    let holds = |kind: &str| {
        array_at(job, "/status/conditions").iter().any(|one| one["type"] == kind && one["status"] == "True")
    };
    let ends = ["Complete", "Failed"].into_iter().find(|kind| holds(kind));
    let stages = ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(|kind| holds(kind));
    let status = match ends {
        Some(end) => end,
        None if is_deleting(job) => "Terminating",
        None => stages.unwrap_or("Running"),
    };
    let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_i64);
    let done = number("/status/succeeded").unwrap_or_default();
    let completions = match (number("/spec/completions"), number("/spec/parallelism").unwrap_or_default()) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{done}/1 of {parallelism}"),
        (None, _) => format!("{done}/1"),
    };
    let start = string_at(job, "/status/startTime");
    let end = string_at(job, "/status/completionTime").parse().unwrap_or(now);
    vec![json!(status), json!(completions), since(end, start, "")]
}

fn cron_job(now: Timestamp, cron: &Value) -> Vec<Value> {
    let zone = Some(string_at(cron, "/spec/timeZone")).filter(|zone| !zone.is_empty()).unwrap_or("<none>");
    let suspended = cron.pointer("/spec/suspend") == Some(&json!(true));
    vec![
        json!(string_at(cron, "/spec/schedule")),
        json!(zone),
        json!(if suspended { "True" } else { "False" }),
        json!(array_at(cron, "/status/active").len()),
        since(now, string_at(cron, "/status/lastScheduleTime"), "<none>"),
    ]
}

fn daemon_set(set: &Value) -> Vec<Value> {
    let count =
        |field: &str| json!(set.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or_default());
    let wanted = json!({"matchLabels": value_at(set, "/spec/template/spec/nodeSelector")});
    let fields = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    fields.iter().map(|field| count(field)).chain([json!(selector(Some(&wanted)))]).collect()
}

fn node(node: &Value, old: &Value) -> Vec<Value> {
    let ready = array_at(node, "/status/conditions").iter().find(|one| one["type"] == "Ready");
    let mut status = match ready.map(|ready| string_at(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if value_at(node, "/spec/unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = value_at(node, "/metadata/labels").and_then(Value::as_object);
    let roles: Vec<&str> =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| {
        let found = array_at(node, "/status/addresses").iter().find(|one| one["type"] == kind);
        found.map_or("<none>", |found| string_at(found, "/address")).to_owned()
    };
    let info = |field: &str| json!(string_at(node, &format!("/status/nodeInfo/{field}")));
    vec![
        json!(name(node)),
        json!(status),
        json!(roles),
        old.clone(),
        info("kubeletVersion"),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

/// Joins the first elements, and counts the others.
fn join_first(all: &[String]) -> String {
    match all.len() {
        0 => "<none>".to_owned(),
        count if count > ADDRESSES_MAX => {
            format!("{} + {} more...", all[..ADDRESSES_MAX].join(","), count - ADDRESSES_MAX)
        }
        _ => all.join(","),
    }
}

fn endpoints(endpoints: &Value) -> String {
    let mut all = Vec::new();
    for subset in array_at(endpoints, "/subsets") {
        for address in array_at(subset, "/addresses") {
            let ports = array_at(subset, "/ports").iter();
            all.extend(ports.map(|port| format!("{}:{}", string_at(address, "/ip"), port["port"])));
        }
    }
    join_first(&all)
}

fn slice(slice: &Value) -> Vec<Value> {
    let ports: Vec<String> = array_at(slice, "/ports").iter().map(|port| port["port"].to_string()).collect();
    let addresses = array_at(slice, "/endpoints").iter().flat_map(|endpoint| array_at(endpoint, "/addresses"));
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    let unset = |text: String| if text == "<none>" { "<unset>".to_owned() } else { text };
    vec![
        json!(string_at(slice, "/addressType")),
        json!(unset(join_first(&ports))),
        json!(unset(join_first(&addresses))),
    ]
}

/// Largest number of printed metrics.
const METRICS_MAX: usize = 2;

fn autoscaler(autoscaler: &Value) -> Vec<Value> {
    let target = value_at(autoscaler, "/spec/scaleTargetRef").cloned().unwrap_or_default();
    let metrics = array_at(autoscaler, "/spec/metrics");
    let seen = array_at(autoscaler, "/status/currentMetrics");
    let shown: Vec<String> =
        metrics.iter().enumerate().take(METRICS_MAX).map(|(index, wanted)| metric(wanted, seen.get(index))).collect();
    let more = metrics.len().saturating_sub(METRICS_MAX);
    let more = if more > 0 { format!(" + {more} more...") } else { String::new() };
    let targets = if metrics.is_empty() { "<none>".to_owned() } else { format!("{}{more}", shown.join(", ")) };
    let least = value_at(autoscaler, "/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), Value::to_string);
    vec![
        json!(format!("{}/{}", string_at(&target, "/kind"), string_at(&target, "/name"))),
        json!(targets),
        json!(least),
        value_at(autoscaler, "/spec/maxReplicas").cloned().unwrap_or_default(),
        value_at(autoscaler, "/status/currentReplicas").cloned().unwrap_or_else(|| json!(0)),
    ]
}

/// Returns the current and the target value of a metric.
fn metric(wanted: &Value, seen: Option<&Value>) -> String {
    let sources = ["resource", "containerResource", "pods", "object", "external"];
    let Some((source, held)) = sources.iter().find_map(|source| Some((*source, wanted.get(*source)?))) else {
        return "<unknown type>".to_owned();
    };
    let current = seen.and_then(|seen| seen.get(source)?.get("current"));
    let value_of = |holder: Option<&Value>, field: &str| match holder.and_then(|holder| holder.get(field)) {
        Some(Value::String(amount)) => Some(amount.clone()),
        Some(Value::Number(percent)) => Some(format!("{percent}%")),
        _ => None,
    };
    let fields = ["averageUtilization", "value", "averageValue"];
    let target = held.get("target");
    let field = fields.into_iter().find(|field| value_of(target, field).is_some()).unwrap_or("value");
    let now = value_of(current, field).unwrap_or_else(|| "<unknown>".to_owned());
    let goal = value_of(target, field).unwrap_or_else(|| "<auto>".to_owned());
    let average = if matches!(source, "object" | "external") && field == "averageValue" { " (avg)" } else { "" };
    match source {
        "resource" | "containerResource" => format!("{}: {now}/{goal}", string_at(held, "/name")),
        _ => format!("{now}/{goal}{average}"),
    }
}

fn event(now: Timestamp, event: &Value) -> Vec<Value> {
    let about = &event["involvedObject"];
    let object = format!("{}/{}", string_at(about, "/kind").to_lowercase(), string_at(about, "/name"));
    let either = |one: &str, other: &'static str| -> String {
        let value = string_at(event, one);
        if value.is_empty() { string_at(event, other) } else { value }.to_owned()
    };
    let (first, series) = (either("/firstTimestamp", "/eventTime"), event.get("series"));
    let last = match series {
        Some(series) => string_at(series, "/lastObservedTime").to_owned(),
        None => {
            Some(string_at(event, "/lastTimestamp").to_owned()).filter(|last| !last.is_empty()).unwrap_or(first.clone())
        }
    };
    let counted = series.unwrap_or(event).get("count").and_then(Value::as_i64).unwrap_or(1);
    let source = [either("/source/component", "/reportingComponent"), either("/source/host", "/reportingInstance")];
    let source: Vec<String> = source.into_iter().filter(|part| !part.is_empty()).collect();
    vec![
        since(now, &last, "<unknown>"),
        json!(string_at(event, "/type")),
        json!(string_at(event, "/reason")),
        json!(object),
        json!(string_at(about, "/fieldPath")),
        json!(source.join(", ")),
        json!(string_at(event, "/message").trim()),
        since(now, &first, "<unknown>"),
        json!(counted),
        json!(name(event)),
    ]
}
