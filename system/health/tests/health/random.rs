//! Random objects: no panic, deterministic results, bounded messages.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sindri_health::{
    AssessedObject, Health, MESSAGE_CHARACTERS_MAX, REASON_CHARACTERS_MAX, assess, explain, pod_selector, summarize,
};

use crate::with_rule;

/// Kinds with rules of their own, with their versions.
const KINDS: [(&str, &str); 19] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("v1", "Service"),
    ("networking.k8s.io/v1", "Ingress"),
    ("v1", "Namespace"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "Secret"),
    ("example.com/v1", "Thing"),
];

/// Names of fields that are read, so that random objects reach deep code.
const NAMES: [&str; 48] = [
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "generation",
    "deletionTimestamp",
    "annotations",
    "finalizers",
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "availableReplicas",
    "readyReplicas",
    "conditions",
    "type",
    "reason",
    "message",
    "phase",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "lastState",
    "waiting",
    "terminated",
    "running",
    "exitCode",
    "restartCount",
    "ready",
    "started",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "updateStrategy",
    "rollingUpdate",
    "partition",
    "paused",
    "suspend",
    "startTime",
    "loadBalancer",
    "ingress",
    "desiredNumberScheduled",
    "restartPolicy",
    "containers",
    "readinessProbe",
];
const WORDS: [&str; 24] = [
    "True",
    "False",
    "Unknown",
    "Ready",
    "Available",
    "Progressing",
    "Stalled",
    "Reconciling",
    "Failed",
    "Complete",
    "Pending",
    "Running",
    "Succeeded",
    "Bound",
    "Lost",
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "OOMKilled",
    "LoadBalancer",
    "OnDelete",
    "In",
    "PodScheduled",
    "AbleToScale",
    "ScalingActive",
];
/// Parts of rules.
const PARTS: [&str; 44] = [
    "object",
    "self",
    "x",
    "y",
    ".status",
    ".list",
    ".all",
    ".exists",
    ".map",
    ".filter",
    ".exists_one",
    "has",
    "size",
    "int",
    "string",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    " in ",
    "'a'",
    "1",
    "0.5",
    "2u",
    "true",
    "null",
    ".",
];

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(&NAMES[..]).prop_map(ToOwned::to_owned), 1 => any::<String>()]
}

fn any_document() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(6, 96, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_name(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An object of some kind with random content at the usual places.
fn any_object() -> impl Strategy<Value = Value> {
    (prop::sample::select(&KINDS[..]), any_document(), any_document(), any_document()).prop_map(|((version, kind), metadata, spec, status)| {
        json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status })
    })
}

fn assert_bounded(health: &Health) {
    assert!(health.message.chars().count() <= MESSAGE_CHARACTERS_MAX, "{health:?}");
    assert!(!health.message.contains(char::is_control), "{health:?}");
    assert!(!health.reason.is_empty() && health.reason.len() <= REASON_CHARACTERS_MAX, "{health:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_object_is_assessed_deterministically(value in prop_oneof![any_object(), any_document()], pods in prop::collection::vec(any_document(), 0..3)) {
        let health = explain(assess(&value), &pods);
        assert_bounded(&health);
        prop_assert_eq!(&health, &explain(assess(&value.clone()), &pods));
        let mut reversed = pods.clone();
        reversed.reverse();
        prop_assert_eq!(&health, &explain(assess(&value), &reversed));
        prop_assert_ne!(pod_selector(&value).map(|pods| pods.labels), Some(String::new()));
    }

    #[test]
    fn a_summary_does_not_depend_on_the_order(values in prop::collection::vec(any_object(), 0..5)) {
        let mut objects: Vec<AssessedObject> = values.iter().map(|value| AssessedObject::new(value, &[])).collect();
        let summary = summarize(&objects);
        objects.reverse();
        prop_assert_eq!(summary.to_json(), summarize(&objects).to_json());
    }

    #[test]
    fn any_rule_is_evaluated_deterministically(parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 0..40), value in any_document()) {
        let object = with_rule(&parts.concat(), json!({ "list": [1, "a", value] }));
        let health = assess(&object);
        assert_bounded(&health);
        prop_assert_eq!(&health, &assess(&object));
    }

    #[test]
    fn any_text_as_a_rule_is_handled(rule in any::<String>()) {
        assert_bounded(&assess(&with_rule(&rule, json!({}))));
    }
}
