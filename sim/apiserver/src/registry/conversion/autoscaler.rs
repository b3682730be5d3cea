//! Conversion of HorizontalPodAutoscalers: `v1` has only the CPU utilization; everything else is in its annotations.

use serde_json::{Map, Value, json};

use crate::object::fields::{array_at, metadata, string_at, value_at};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All annotations that hold fields of `v2`.
const FIELD_ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// Target CPU utilization of an autoscaler without a metric.
const DEFAULT_UTILIZATION: i64 = 80;
/// Fields of spec and status that both versions have.
const SPEC_FIELDS: [&str; 3] = ["scaleTargetRef", "minReplicas", "maxReplicas"];
const STATUS_FIELDS: [&str; 4] = ["observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"];

/// Sources of metrics, in Go's field order.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// A field of a source: name in the annotation, JSON pointer in `v2`, and true if it is always present.
type SourceField = (&'static str, &'static str, bool);

/// Returns the fields of a metric specification in an annotation.
fn target_fields(source: &str) -> &'static [SourceField] {
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

/// Returns the fields of a current metric in an annotation.
fn current_fields(source: &str) -> &'static [SourceField] {
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

/// Converts from `v2` to `v1`.
pub(super) fn to_v1(autoscaler: &Value) -> Value {
    let mut converted = autoscaler.clone();
    let metrics = array_at(autoscaler, "/spec/metrics");
    let mut spec = select_fields(&autoscaler["spec"], &SPEC_FIELDS);
    if let Some(percent) = metrics.iter().find_map(cpu_utilization) {
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
    }
    converted["spec"] = spec.into();
    let mut status = select_fields(&autoscaler["status"], &STATUS_FIELDS);
    let current_metrics = array_at(autoscaler, "/status/currentMetrics");
    let current = |metric: &Value| value_at(cpu_resource(metric)?, "/current/averageUtilization").cloned();
    if let Some(percent) = current_metrics.iter().filter_map(current).next_back() {
        status.insert("currentCPUUtilizationPercentage".to_owned(), percent);
    }
    converted["status"] = status.into();
    remove_field_annotations(&mut converted);
    let others: Vec<&Value> = metrics.iter().filter(|metric| cpu_utilization(metric).is_none()).collect();
    annotate_list(&mut converted, METRICS, &others, |metric| format_metric(metric, target_fields));
    annotate_list(&mut converted, CURRENT_METRICS, &current_metrics.iter().collect::<Vec<_>>(), |metric| {
        format_metric(metric, current_fields)
    });
    let conditions = array_at(autoscaler, "/status/conditions");
    annotate_list(&mut converted, CONDITIONS, &conditions.iter().collect::<Vec<_>>(), format_condition);
    if let Some(behavior) = value_at(autoscaler, "/spec/behavior").filter(|behavior| behavior.is_object()) {
        annotate(&mut converted, BEHAVIOR, format_behavior(behavior));
    }
    converted
}

/// Converts from `v1` to `v2`.
pub(super) fn to_v2(autoscaler: &Value) -> Value {
    let mut converted = autoscaler.clone();
    let annotation = |name: &str| {
        let annotation =
            value_at(autoscaler, "/metadata/annotations").and_then(|all| all.get(name)).and_then(Value::as_str);
        annotation.and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let mut spec = select_fields(&autoscaler["spec"], &SPEC_FIELDS);
    let others = annotation(METRICS).unwrap_or_default();
    let mut metrics: Vec<Value> =
        array_at(&others, "").iter().map(|metric| parse_metric(metric, target_fields, true)).collect();
    let percent =
        value_at(autoscaler, "/spec/targetCPUUtilizationPercentage").filter(|percent| percent.is_i64()).cloned();
    if let Some(percent) = percent.or_else(|| metrics.is_empty().then(|| json!(DEFAULT_UTILIZATION))) {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    spec.insert("metrics".to_owned(), metrics.into());
    if let Some(behavior) =
        annotation(BEHAVIOR).map(|annotated| parse_behavior(&annotated)).filter(|behavior| behavior != &json!({}))
    {
        spec.insert("behavior".to_owned(), behavior);
    }
    converted["spec"] = spec.into();
    let mut status = select_fields(&autoscaler["status"], &STATUS_FIELDS);
    let current = annotation(CURRENT_METRICS).filter(Value::is_array);
    let from_annotation = current.map(|annotated| {
        array_at(&annotated, "").iter().map(|metric| parse_metric(metric, current_fields, false)).collect()
    });
    let percent = value_at(autoscaler, "/status/currentCPUUtilizationPercentage").filter(|percent| percent.is_i64());
    let from_percentage = percent.map(|percent| {
        json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}])
    });
    status.insert("currentMetrics".to_owned(), from_annotation.or(from_percentage).unwrap_or_default());
    // `v2` omits a count of zero.
    status.retain(|name, value| name != "currentReplicas" || *value != 0);
    if let Some(conditions) = annotation(CONDITIONS).filter(Value::is_array) {
        status.insert("conditions".to_owned(), conditions);
    }
    converted["status"] = status.into();
    remove_field_annotations(&mut converted);
    converted
}

fn select_fields(object: &Value, names: &[&str]) -> Map<String, Value> {
    names.iter().filter_map(|name| Some(((*name).to_owned(), object.get(name)?.clone()))).collect()
}

/// Returns the target CPU utilization of a metric.
fn cpu_utilization(metric: &Value) -> Option<&Value> {
    cpu_resource(metric).and_then(|cpu| value_at(cpu, "/target/averageUtilization"))
}

/// Returns the resource of a metric if it is the CPU.
fn cpu_resource(metric: &Value) -> Option<&Value> {
    let resource = metric.get("resource")?;
    (string_at(metric, "/type") == "Resource" && string_at(resource, "/name") == "cpu").then_some(resource)
}

fn remove_field_annotations(autoscaler: &mut Value) {
    let Some(annotations) = autoscaler.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.retain(|name, _| !FIELD_ANNOTATIONS.contains(&name.as_str()));
    if annotations.is_empty() {
        metadata(autoscaler).remove("annotations");
    }
}

fn annotate(autoscaler: &mut Value, name: &str, value: String) {
    let annotations = metadata(autoscaler).entry("annotations").or_insert_with(|| json!({}));
    annotations[name] = json!(value);
}

fn annotate_list(autoscaler: &mut Value, name: &str, parts: &[&Value], format_part: impl Fn(&Value) -> String) {
    if !parts.is_empty() {
        let parts: Vec<String> = parts.iter().map(|part| format_part(part)).collect();
        annotate(autoscaler, name, format!("[{}]", parts.join(",")));
    }
}

/// Formats a JSON object with its fields in this order, which is Go's.
fn format_object(fields: impl IntoIterator<Item = (&'static str, Option<String>)>) -> String {
    let parts = fields.into_iter().filter_map(|(name, value)| Some(format!("{name:?}:{}", value?)));
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

fn format_metric(metric: &Value, fields: fn(&str) -> &'static [SourceField]) -> String {
    let source = |source: &'static str| {
        let content = metric.get(source)?;
        let field =
            |(name, pointer, always): &SourceField| (*name, format_value(value_at(content, pointer), name, *always));
        Some(format_object(fields(source).iter().map(field)))
    };
    let kind = std::iter::once(("type", metric.get("type").map(Value::to_string)));
    format_object(kind.chain(SOURCES.map(|name| (name, source(name)))))
}

fn format_value(value: Option<&Value>, name: &str, always: bool) -> Option<String> {
    match (name, value.filter(|value| !value.is_null())) {
        ("target", Some(target)) => Some(format_object([
            ("kind", target.get("kind").map(Value::to_string)),
            ("name", target.get("name").map(Value::to_string)),
            ("apiVersion", target.get("apiVersion").map(Value::to_string)),
        ])),
        ("selector" | "metricSelector", Some(selector)) => Some(format_object([
            ("matchLabels", selector.get("matchLabels").map(Value::to_string)),
            ("matchExpressions", selector.get("matchExpressions").map(Value::to_string)),
        ])),
        (_, Some(value)) => Some(value.to_string()),
        (name, None) if always => Some(if name.ends_with("Value") { "\"0\"" } else { "\"\"" }.to_owned()),
        (_, None) => None,
    }
}

/// Converts a metric of an annotation to `v2`.
fn parse_metric(annotated: &Value, fields: fn(&str) -> &'static [SourceField], is_target: bool) -> Value {
    let mut metric = json!({"type": annotated.get("type").cloned().unwrap_or_default()});
    for source in SOURCES {
        let Some(content) = annotated.get(source) else { continue };
        for (name, pointer, _) in fields(source) {
            if let Some(value) = content.get(*name) {
                set_at(&mut metric[source], pointer, value.clone());
            }
        }
        if !is_target
            && content.get("currentAverageUtilization").is_some()
            && content.get("currentAverageValue") == Some(&json!("0"))
        {
            // The annotation cannot omit the value: a zero next to a utilization means that it is absent.
            metric[source]["current"].as_object_mut().map(|current| current.remove("averageValue"));
        }
        if is_target {
            metric[source]["target"]["type"] = json!(target_type(source, content));
        }
    }
    metric
}

fn set_at(object: &mut Value, pointer: &str, value: Value) {
    let field = pointer.split('/').skip(1).fold(object, |object, part| &mut object[part]);
    *field = value;
}

/// Returns the type of a metric's target.
fn target_type(source: &str, content: &Value) -> &'static str {
    let has = |name: &str| content.get(name).is_some();
    match source {
        "object" if !has("averageValue") => "Value",
        "external" if has("targetValue") => "Value",
        "resource" | "containerResource" if has("targetAverageUtilization") => "Utilization",
        _ => "AverageValue",
    }
}

fn format_condition(condition: &Value) -> String {
    let names = ["type", "status", "lastTransitionTime", "reason", "message"];
    format_object(names.map(|name| (name, condition.get(name).map(Value::to_string))))
}

/// Fields of scaling rules and policies, by their names in `v2` and in Go.
const RULES: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];
const POLICY: [(&str, &str); 3] = [("type", "Type"), ("value", "Value"), ("periodSeconds", "PeriodSeconds")];
const DIRECTIONS: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];

fn format_behavior(behavior: &Value) -> String {
    let or_null = |value: Option<String>| Some(value.unwrap_or_else(|| "null".to_owned()));
    let policy =
        |policy: &Value| format_object(POLICY.map(|(name, go)| (go, or_null(policy.get(name).map(Value::to_string)))));
    let rules = |rules: &Value| {
        format_object(RULES.map(|(name, go)| {
            let value = rules.get(name).filter(|value| !value.is_null()).map(|value| match value {
                Value::Array(policies) => format!("[{}]", policies.iter().map(policy).collect::<Vec<_>>().join(",")),
                other => other.to_string(),
            });
            (go, or_null(value))
        }))
    };
    format_object(
        DIRECTIONS.map(|(name, go)| (go, or_null(behavior.get(name).filter(|rules| rules.is_object()).map(rules)))),
    )
}

fn parse_behavior(annotated: &Value) -> Value {
    let read = |object: &Value, names: &[(&str, &str)]| -> Map<String, Value> {
        let field = |(name, go): &(&str, &str)| {
            Some(((*name).to_owned(), object.get(go).filter(|value| !value.is_null())?.clone()))
        };
        names.iter().filter_map(field).collect()
    };
    let mut behavior = read(annotated, &DIRECTIONS);
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
    fn fields_that_v1_lacks_round_trip_through_annotations() {
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
        let old = to_v1(&autoscaler);
        assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 70);
        let expected = r#"[{"type":"Pods","pods":{"metricName":"requests","targetAverageValue":"10","selector":{"matchLabels":{"a":"b"}}}}]"#;
        assert_eq!(old["metadata"]["annotations"][METRICS], expected);
        assert_eq!(to_v2(&old), autoscaler);
    }

    #[test]
    fn an_autoscaler_without_a_metric_targets_cpu_utilization() {
        let old = json!({"kind": "HorizontalPodAutoscaler", "metadata": {}, "spec": {"maxReplicas": 2}, "status": {}});
        let new = to_v2(&old);
        assert_eq!(value_at(&new, "/spec/metrics/0/resource/target/averageUtilization"), Some(&json!(80)));
    }
}
