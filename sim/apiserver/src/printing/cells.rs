//! Table cells of pods, jobs, daemon sets, nodes, endpoints, autoscalers and events, as `kubectl get` prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{at, is_deleting, list, name, text};
use crate::printing::format::{age, selector};

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
    let old = json!(age(now, text(object, "/metadata/creationTimestamp")));
    let mut row = vec![own];
    match kind {
        "Pod" => row.extend(pod(object).into_iter().chain([old]).chain(location_cells(object))),
        "HorizontalPodAutoscaler" => row.extend(autoscaler(object).into_iter().chain([old])),
        "Job" => row.extend(job(now, object).into_iter().chain([old]).chain(template(object))),
        "CronJob" => row.extend(cron_job(now, object).into_iter().chain([old]).chain(cron_template(object))),
        "DaemonSet" => row.extend(daemon_set(object).into_iter().chain([old]).chain(template(object))),
        "Node" => return Some(node(object, &old)),
        "Endpoints" => row.extend([json!(endpoints(object)), old]),
        "EndpointSlice" => row.extend(slice(object).into_iter().chain([old])),
        "ControllerRevision" => {
            let owner = list(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true);
            let owner = owner.map(|owner| {
                let group = text(owner, "/apiVersion").split('/').next().unwrap_or_default();
                format!("{}.{group}/{}", text(owner, "/kind").to_lowercase(), text(owner, "/name"))
            });
            row.extend([json!(owner.unwrap_or_else(|| "<none>".to_owned())), object["revision"].clone(), old]);
        }
        "Event" => return Some(event(now, object)),
        _ => return None,
    }
    Some(row)
}

/// Returns the status of a pod in one word.
fn pod_status(pod: &Value) -> String {
    let mut word = text(pod, "/status/reason").to_owned();
    if word.is_empty() {
        text(pod, "/status/phase").clone_into(&mut word);
    }
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        let waiting = text(status, "/state/waiting/reason");
        let ended = text(status, "/state/terminated/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut word);
        } else if !ended.is_empty() {
            ended.clone_into(&mut word);
        }
    }
    if is_deleting(pod) { "Terminating".to_owned() } else { word }
}

fn pod(pod: &Value) -> Vec<Value> {
    let statuses = list(pod, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let all = list(pod, "/spec/containers").len();
    let restarts: u64 = statuses.iter().filter_map(|status| status["restartCount"].as_u64()).sum();
    vec![json!(format!("{ready}/{all}")), json!(pod_status(pod)), json!(restarts.to_string())]
}

/// Returns the address and node cells of a pod.
fn location_cells(pod: &Value) -> Vec<Value> {
    let or_none = |pointer: &str| json!(Some(text(pod, pointer)).filter(|text| !text.is_empty()).unwrap_or("<none>"));
    vec![or_none("/status/podIP"), or_none("/spec/nodeName"), or_none("/status/nominatedNodeName"), json!("<none>")]
}

/// Returns the container, image and selector cells of an object with a pod template.
fn template(object: &Value) -> Vec<Value> {
    let containers = list(object, "/spec/template/spec/containers");
    let joined = |field: &str| json!(containers.iter().map(|one| text(one, field)).collect::<Vec<_>>().join(","));
    vec![joined("/name"), joined("/image"), json!(selector(object.pointer("/spec/selector")))]
}

fn cron_template(cron: &Value) -> Vec<Value> {
    let inner = json!({"spec": at(cron, "/spec/jobTemplate/spec")});
    template(&inner)
}

fn since(now: Timestamp, stamp: &str, otherwise: &str) -> Value {
    if stamp.is_empty() { json!(otherwise) } else { json!(age(now, stamp)) }
}

fn job(now: Timestamp, job: &Value) -> Vec<Value> {
    let holds =
        |kind: &str| list(job, "/status/conditions").iter().any(|one| one["type"] == kind && one["status"] == "True");
    let words = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
        ("Suspended", "Suspended"),
    ];
    let status = words.iter().find(|(kind, _)| holds(kind)).map_or("Running", |(_, word)| *word);
    let done = job.pointer("/status/succeeded").and_then(Value::as_i64).unwrap_or_default();
    let wanted = job.pointer("/spec/completions").and_then(Value::as_i64).unwrap_or(1);
    let start = text(job, "/status/startTime");
    let end = text(job, "/status/completionTime").parse().unwrap_or(now);
    vec![json!(status), json!(format!("{done}/{wanted}")), since(end, start, "")]
}

fn cron_job(now: Timestamp, cron: &Value) -> Vec<Value> {
    let zone = Some(text(cron, "/spec/timeZone")).filter(|zone| !zone.is_empty()).unwrap_or("<none>");
    let suspended = cron.pointer("/spec/suspend") == Some(&json!(true));
    vec![
        json!(text(cron, "/spec/schedule")),
        json!(zone),
        json!(if suspended { "True" } else { "False" }),
        json!(list(cron, "/status/active").len()),
        since(now, text(cron, "/status/lastScheduleTime"), "<none>"),
    ]
}

fn daemon_set(set: &Value) -> Vec<Value> {
    let count =
        |field: &str| json!(set.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or_default());
    let wanted = json!({"matchLabels": at(set, "/spec/template/spec/nodeSelector")});
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
    let ready = list(node, "/status/conditions").iter().find(|one| one["type"] == "Ready");
    let mut status = match ready.map(|ready| text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if at(node, "/spec/unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = at(node, "/metadata/labels").and_then(Value::as_object);
    let roles: Vec<&str> =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| {
        let found = list(node, "/status/addresses").iter().find(|one| one["type"] == kind);
        found.map_or("<none>", |found| text(found, "/address")).to_owned()
    };
    let info = |field: &str| json!(text(node, &format!("/status/nodeInfo/{field}")));
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
    for subset in list(endpoints, "/subsets") {
        for address in list(subset, "/addresses") {
            let ports = list(subset, "/ports").iter();
            all.extend(ports.map(|port| format!("{}:{}", text(address, "/ip"), port["port"])));
        }
    }
    join_first(&all)
}

fn slice(slice: &Value) -> Vec<Value> {
    let ports: Vec<String> = list(slice, "/ports").iter().map(|port| port["port"].to_string()).collect();
    let addresses = list(slice, "/endpoints").iter().flat_map(|endpoint| list(endpoint, "/addresses"));
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    let unset = |told: String| if told == "<none>" { "<unset>".to_owned() } else { told };
    vec![json!(text(slice, "/addressType")), json!(unset(join_first(&ports))), json!(unset(join_first(&addresses)))]
}

/// Largest number of printed metrics.
const METRICS_MAX: usize = 2;

fn autoscaler(autoscaler: &Value) -> Vec<Value> {
    let target = at(autoscaler, "/spec/scaleTargetRef").cloned().unwrap_or_default();
    let metrics = list(autoscaler, "/spec/metrics");
    let seen = list(autoscaler, "/status/currentMetrics");
    let shown: Vec<String> =
        metrics.iter().enumerate().take(METRICS_MAX).map(|(index, wanted)| metric(wanted, seen.get(index))).collect();
    let more = metrics.len().saturating_sub(METRICS_MAX);
    let more = if more > 0 { format!(" + {more} more...") } else { String::new() };
    let targets = if metrics.is_empty() { "<none>".to_owned() } else { format!("{}{more}", shown.join(", ")) };
    let least = at(autoscaler, "/spec/minReplicas").map_or_else(|| "<unset>".to_owned(), Value::to_string);
    vec![
        json!(format!("{}/{}", text(&target, "/kind"), text(&target, "/name"))),
        json!(targets),
        json!(least),
        at(autoscaler, "/spec/maxReplicas").cloned().unwrap_or_default(),
        at(autoscaler, "/status/currentReplicas").cloned().unwrap_or_else(|| json!(0)),
    ]
}

/// Returns the current and the target value of a metric.
fn metric(wanted: &Value, seen: Option<&Value>) -> String {
    let sources = ["resource", "containerResource", "pods", "object", "external"];
    let Some((source, held)) = sources.iter().find_map(|source| Some((*source, wanted.get(*source)?))) else {
        return "<unknown type>".to_owned();
    };
    let current = seen.and_then(|seen| seen.get(source)?.get("current"));
    let said = |holder: Option<&Value>, field: &str| match holder.and_then(|holder| holder.get(field)) {
        Some(Value::String(amount)) => Some(amount.clone()),
        Some(Value::Number(percent)) => Some(format!("{percent}%")),
        _ => None,
    };
    let fields = ["averageUtilization", "value", "averageValue"];
    let target = held.get("target");
    let field = fields.into_iter().find(|field| said(target, field).is_some()).unwrap_or("value");
    let now = said(current, field).unwrap_or_else(|| "<unknown>".to_owned());
    let goal = said(target, field).unwrap_or_else(|| "<auto>".to_owned());
    let average = if matches!(source, "object" | "external") && field == "averageValue" { " (avg)" } else { "" };
    match source {
        "resource" | "containerResource" => format!("{}: {now}/{goal}", text(held, "/name")),
        _ => format!("{now}/{goal}{average}"),
    }
}

fn event(now: Timestamp, event: &Value) -> Vec<Value> {
    let about = &event["involvedObject"];
    let object = format!("{}/{}", text(about, "/kind").to_lowercase(), text(about, "/name"));
    let either = |one: &str, other: &'static str| -> String {
        let said = text(event, one);
        if said.is_empty() { text(event, other) } else { said }.to_owned()
    };
    let (first, series) = (either("/firstTimestamp", "/eventTime"), event.get("series"));
    let last = match series {
        Some(series) => text(series, "/lastObservedTime").to_owned(),
        None => Some(text(event, "/lastTimestamp").to_owned()).filter(|last| !last.is_empty()).unwrap_or(first.clone()),
    };
    let counted = series.unwrap_or(event).get("count").and_then(Value::as_i64).unwrap_or(1);
    let source = [either("/source/component", "/reportingComponent"), either("/source/host", "/reportingInstance")];
    let source: Vec<String> = source.into_iter().filter(|part| !part.is_empty()).collect();
    vec![
        since(now, &last, "<unknown>"),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(object),
        json!(text(about, "/fieldPath")),
        json!(source.join(", ")),
        json!(text(event, "/message").trim()),
        since(now, &first, "<unknown>"),
        json!(counted),
        json!(name(event)),
    ]
}
