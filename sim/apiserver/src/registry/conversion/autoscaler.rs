//! Autoscalers: the older version knows only the use of processors; everything else is in its annotations.

use serde_json::{Map, Value, json};

use crate::object::fields::{at, list, metadata, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// Every annotation that is a part of the object in disguise.
const DISGUISES: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// What an autoscaler without a metric is meant to keep.
const UTILIZATION: i64 = 80;
/// Fields of a spec and of a status that both versions have.
const OF_SPEC: [&str; 3] = ["scaleTargetRef", "minReplicas", "maxReplicas"];
const OF_STATUS: [&str; 4] = ["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"];

/// Where a metric comes from, in the order in which Go has it.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// A field of a source: its name in the annotation, its place in the newer version, and whether it is always there.
type Row = (&'static str, &'static str, bool);

/// What an annotation says about a metric that is wanted.
fn wanted_rows(source: &str) -> &'static [Row] {
    match source {
        "object" => &[
            ("target", "/describedObject", true),
            ("metricName", "/metric/name", true),
            ("targetValue", "/target/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/target/averageValue", false),
        ],
        "pods" => &[
            ("metricName", "/metric/name", true),
            ("targetAverageValue", "/target/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
        "external" => &[
            ("metricName", "/metric/name", true),
            ("metricSelector", "/metric/selector", false),
            ("targetValue", "/target/value", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
        "containerResource" => &[
            ("name", "/name", true),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
            ("container", "/container", true),
        ],
        _ => &[
            ("name", "/name", true),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
    }
}

/// What an annotation says about a metric that was seen.
fn current_rows(source: &str) -> &'static [Row] {
    match source {
        "object" => &[
            ("target", "/describedObject", true),
            ("metricName", "/metric/name", true),
            ("currentValue", "/current/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/current/averageValue", false),
        ],
        "pods" => &[
            ("metricName", "/metric/name", true),
            ("currentAverageValue", "/current/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
        "external" => &[
            ("metricName", "/metric/name", true),
            ("metricSelector", "/metric/selector", false),
            ("currentValue", "/current/value", true),
            ("currentAverageValue", "/current/averageValue", false),
        ],
        "containerResource" => &[
            ("name", "/name", true),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
            ("container", "/container", true),
        ],
        _ => &[
            ("name", "/name", true),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
        ],
    }
}

/// The newer version in the words of the older.
pub(super) fn older(autoscaler: &Value) -> Value {
    let mut older = autoscaler.clone();
    let metrics = list(autoscaler, "/spec/metrics");
    let mut spec = some(&autoscaler["spec"], &OF_SPEC);
    if let Some(percent) = metrics.iter().find_map(utilization) {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
    }
    older["spec"] = spec.into();
    let mut status = some(&autoscaler["status"], &OF_STATUS);
    let seen = list(autoscaler, "/status/currentMetrics");
    let current = |metric: &Value| at(of_processor(metric)?, "/current/averageUtilization").cloned();
    if let Some(percent) = seen.iter().filter_map(current).next_back() {
        status.insert("currentCPUUtilizationPercentage".to_owned(), percent);
    }
    older["status"] = status.into();
    drop_disguises(&mut older);
    let others: Vec<&Value> = metrics.iter().filter(|metric| utilization(metric).is_none()).collect();
    disguise(&mut older, METRICS, &others, |metric| metric_text(metric, wanted_rows));
    disguise(&mut older, CURRENT, &seen.iter().collect::<Vec<_>>(), |metric| metric_text(metric, current_rows));
    let conditions = list(autoscaler, "/status/conditions");
    disguise(&mut older, CONDITIONS, &conditions.iter().collect::<Vec<_>>(), condition_text);
    if let Some(behavior) = at(autoscaler, "/spec/behavior").filter(|behavior| behavior.is_object()) {
        annotate(&mut older, BEHAVIOR, behavior_text(behavior));
    }
    older
}

/// The older version in the words of the newer.
pub(super) fn newer(autoscaler: &Value) -> Value {
    let mut newer = autoscaler.clone();
    let annotation = |name: &str| {
        let told = at(autoscaler, "/metadata/annotations").and_then(|all| all.get(name)).and_then(Value::as_str);
        told.and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let mut spec = some(&autoscaler["spec"], &OF_SPEC);
    let others = annotation(METRICS).unwrap_or_default();
    let mut metrics: Vec<Value> = list(&others, "").iter().map(|metric| metric_of(metric, wanted_rows, true)).collect();
    let percent = at(autoscaler, "/spec/targetCPUUtilizationPercentage").filter(|percent| percent.is_i64()).cloned();
    if let Some(percent) = percent.or_else(|| metrics.is_empty().then(|| json!(UTILIZATION))) {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    spec.insert("metrics".to_owned(), metrics.into());
    if let Some(behavior) = annotation(BEHAVIOR).map(|told| behavior_of(&told)).filter(|told| told != &json!({})) {
        spec.insert("behavior".to_owned(), behavior);
    }
    newer["spec"] = spec.into();
    let mut status = some(&autoscaler["status"], &OF_STATUS);
    let current = annotation(CURRENT).filter(Value::is_array);
    let seen =
        current.map(|told| list(&told, "").iter().map(|metric| metric_of(metric, current_rows, false)).collect());
    let percent = at(autoscaler, "/status/currentCPUUtilizationPercentage").filter(|percent| percent.is_i64());
    let plain = percent.map(|percent| {
        json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}])
    });
    status.insert("currentMetrics".to_owned(), seen.or(plain).unwrap_or_default());
    // The newer version does not say that there are none.
    status.retain(|name, value| name != "currentReplicas" || *value != 0);
    if let Some(conditions) = annotation(CONDITIONS).filter(Value::is_array) {
        status.insert("conditions".to_owned(), conditions);
    }
    newer["status"] = status.into();
    drop_disguises(&mut newer);
    newer
}

fn some(holder: &Value, names: &[&str]) -> Map<String, Value> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), holder.get(name)?.clone()))).collect()
}

/// How busy processors should be.
fn utilization(metric: &Value) -> Option<&Value> {
    of_processor(metric).and_then(|cpu| at(cpu, "/target/averageUtilization"))
}

/// The processor in a metric, if that is what it is about.
fn of_processor(metric: &Value) -> Option<&Value> {
    let resource = metric.get("resource")?;
    (text(metric, "/type") == "Resource" && text(resource, "/name") == "cpu").then_some(resource)
}

fn drop_disguises(autoscaler: &mut Value) {
    let Some(annotations) = autoscaler.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.retain(|name, _| !DISGUISES.contains(&name.as_str()));
    if annotations.is_empty() {
        metadata(autoscaler).remove("annotations");
    }
}

fn annotate(autoscaler: &mut Value, name: &str, told: String) {
    let annotations = metadata(autoscaler).entry("annotations").or_insert_with(|| json!({}));
    annotations[name] = json!(told);
}

fn disguise(autoscaler: &mut Value, name: &str, parts: &[&Value], written: impl Fn(&Value) -> String) {
    if !parts.is_empty() {
        let parts: Vec<String> = parts.iter().map(|part| written(part)).collect();
        annotate(autoscaler, name, format!("[{}]", parts.join(",")));
    }
}

/// Fields in this order, which is Go's.
fn in_order(fields: impl IntoIterator<Item = (&'static str, Option<String>)>) -> String {
    let told = fields.into_iter().filter_map(|(name, value)| Some(format!("{name:?}:{}", value?)));
    format!("{{{}}}", told.collect::<Vec<_>>().join(","))
}

fn metric_text(metric: &Value, rows: fn(&str) -> &'static [Row]) -> String {
    let source = |source: &'static str| {
        let held = metric.get(source)?;
        let field = |(name, place, always): &Row| (*name, value_text(at(held, place), name, *always));
        Some(in_order(rows(source).iter().map(field)))
    };
    let kind = std::iter::once(("type", metric.get("type").map(Value::to_string)));
    in_order(kind.chain(SOURCES.map(|name| (name, source(name)))))
}

fn value_text(value: Option<&Value>, name: &str, always: bool) -> Option<String> {
    match (name, value.filter(|value| !value.is_null())) {
        ("target", Some(target)) => Some(in_order([
            ("kind", target.get("kind").map(Value::to_string)),
            ("name", target.get("name").map(Value::to_string)),
            ("apiVersion", target.get("apiVersion").map(Value::to_string)),
        ])),
        ("selector" | "metricSelector", Some(selector)) => Some(in_order([
            ("matchLabels", selector.get("matchLabels").map(Value::to_string)),
            ("matchExpressions", selector.get("matchExpressions").map(Value::to_string)),
        ])),
        (_, Some(value)) => Some(value.to_string()),
        (name, None) if always => Some(if name.ends_with("Value") { "\"0\"" } else { "\"\"" }.to_owned()),
        (_, None) => None,
    }
}

/// A metric of an annotation in the newer version.
fn metric_of(told: &Value, rows: fn(&str) -> &'static [Row], is_wanted: bool) -> Value {
    let mut metric = json!({"type": told.get("type").cloned().unwrap_or_default()});
    for source in SOURCES {
        let Some(held) = told.get(source) else { continue };
        for (name, place, _) in rows(source) {
            if let Some(value) = held.get(*name) {
                put(&mut metric[source], place, value.clone());
            }
        }
        if !is_wanted
            && held.get("currentAverageUtilization").is_some()
            && held.get("currentAverageValue") == Some(&json!("0"))
        {
            // The annotation cannot leave it out, and whoever tells a share does not mean nothing.
            metric[source]["current"].as_object_mut().map(|current| current.remove("averageValue"));
        }
        if is_wanted {
            metric[source]["target"]["type"] = json!(target_type(source, held));
        }
    }
    metric
}

fn put(holder: &mut Value, place: &str, value: Value) {
    let held = place.split('/').skip(1).fold(holder, |holder, part| &mut holder[part]);
    *held = value;
}

/// What is compared with a metric.
fn target_type(source: &str, held: &Value) -> &'static str {
    let has = |name: &str| held.get(name).is_some();
    match source {
        "object" if !has("averageValue") => "Value",
        "external" if has("targetValue") => "Value",
        "resource" | "containerResource" if has("targetAverageUtilization") => "Utilization",
        _ => "AverageValue",
    }
}

fn condition_text(condition: &Value) -> String {
    let names = ["type", "status", "lastTransitionTime", "reason", "message"];
    in_order(names.map(|name| (name, condition.get(name).map(Value::to_string))))
}

/// The fields of rules and of policies, as the newer version and as Go names them.
const RULES: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];
const POLICY: [(&str, &str); 3] = [("type", "Type"), ("value", "Value"), ("periodSeconds", "PeriodSeconds")];
const DIRECTIONS: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];

fn behavior_text(behavior: &Value) -> String {
    let or_null = |value: Option<String>| Some(value.unwrap_or_else(|| "null".to_owned()));
    let policy =
        |policy: &Value| in_order(POLICY.map(|(name, go)| (go, or_null(policy.get(name).map(Value::to_string)))));
    let rules = |rules: &Value| {
        in_order(RULES.map(|(name, go)| {
            let value = rules.get(name).filter(|value| !value.is_null()).map(|value| match value {
                Value::Array(policies) => format!("[{}]", policies.iter().map(policy).collect::<Vec<_>>().join(",")),
                other => other.to_string(),
            });
            (go, or_null(value))
        }))
    };
    in_order(DIRECTIONS.map(|(name, go)| (go, or_null(behavior.get(name).filter(|held| held.is_object()).map(rules)))))
}

fn behavior_of(told: &Value) -> Value {
    let read = |told: &Value, names: &[(&str, &str)]| -> Map<String, Value> {
        let field = |(name, go): &(&str, &str)| {
            Some(((*name).to_owned(), told.get(go).filter(|value| !value.is_null())?.clone()))
        };
        names.iter().filter_map(field).collect()
    };
    let mut behavior = read(told, &DIRECTIONS);
    for rules in behavior.values_mut() {
        let mut read_rules = read(rules, &RULES);
        if let Some(policies) = read_rules.get_mut("policies").and_then(Value::as_array_mut) {
            policies.iter_mut().for_each(|policy| *policy = read(policy, &POLICY).into());
        }
        *rules = read_rules.into();
    }
    behavior.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_older_version_cannot_say_comes_back_from_its_annotations() {
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}});
        let selector = json!({"matchLabels": {"a": "b"}});
        let requests = json!({"type": "Pods", "pods": {
            "metric": {"name": "requests", "selector": selector}, "target": {"type": "AverageValue", "averageValue": "10"},
        }});
        let policies = json!([{"type": "Pods", "value": 4, "periodSeconds": 15}]);
        let autoscaler = json!({
            "kind": "HorizontalPodAutoscaler", "metadata": {"name": "one"},
            "spec": {
                "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}, "metrics": [requests, cpu],
                "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": policies}},
            },
            "status": {"desiredReplicas": 1, "currentMetrics": null},
        });
        let old = older(&autoscaler);
        assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 70);
        let told = r#"[{"type":"Pods","pods":{"metricName":"requests","targetAverageValue":"10","selector":{"matchLabels":{"a":"b"}}}}]"#;
        assert_eq!(old["metadata"]["annotations"][METRICS], told);
        assert_eq!(newer(&old), autoscaler);
    }

    #[test]
    fn an_autoscaler_without_a_metric_keeps_the_use_of_processors() {
        let old = json!({"kind": "HorizontalPodAutoscaler", "metadata": {}, "spec": {"maxReplicas": 2}, "status": {}});
        let new = newer(&old);
        assert_eq!(at(&new, "/spec/metrics/0/resource/target/averageUtilization"), Some(&json!(80)));
    }
}
