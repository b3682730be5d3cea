//! Pod and PodTemplate.

use serde_json::{Map, Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at};
use crate::registry::types::SchemaType;
use crate::strategy::checks::names::path_segment_name_errors;
use crate::strategy::checks::pod_spec;
use crate::strategy::checks::workloads::{RESTART_POLICIES, name_warning};
use crate::strategy::default_values::{map_field, set_default};
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

/// Fields of a pod's spec that may change. For gates and tolerations there are further rules.
const MUTABLE_FIELDS: [&str; 4] =
    ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"];

pub(super) struct Pod;

impl Strategy for Pod {
    fn set_defaults(&self, _schema_type: &SchemaType, object: &mut Value) {
        let Some(spec) = map_field(object, "spec") else { return };
        set_default(spec, "enableServiceLinks", json!(true));
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for resources in containers.into_iter().flatten().filter_map(|container| map_field(container, "resources"))
            {
                let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
                set_default(resources, "requests", json!({}));
                for (name, amount) in limits {
                    set_default(&mut resources["requests"], &name, amount);
                }
            }
        }
    }

    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        object["status"] = json!({"phase": "Pending", "qosClass": qos_class(object)});
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        pod_spec::validate_spec(spec, "spec", &RESTART_POLICIES, &[])
    }

    /// Checks that only mutable fields of the spec change.
    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let immutable_spec = |pod: &Value| {
            let mut spec = pod.get("spec").cloned().unwrap_or_default();
            for list in ["containers", "initContainers"] {
                for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    container["image"] = Value::Null;
                }
            }
            let is_gated = !array_at(live, "/spec/schedulingGates").is_empty();
            let while_gated = ["nodeSelector"].into_iter().filter(|_| is_gated);
            for field in MUTABLE_FIELDS.into_iter().chain(while_gated) {
                if let Some(spec) = spec.as_object_mut() {
                    spec.remove(field);
                }
            }
            spec
        };
        let mut errors = scheduling_errors(live, object);
        if immutable_spec(live) == immutable_spec(object) {
            return errors;
        }
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden("spec", detail));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        object.get("spec").map(|spec| pod_spec::warnings(spec, "spec")).unwrap_or_default()
    }

    fn creation_warnings(&self, object: &Value) -> Vec<String> {
        let rule =
            "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
        name_warning(object, rule).into_iter().chain(self.warnings(object)).collect()
    }

    fn grace_period_seconds(&self, live: &Value, requested: Option<i64>) -> i64 {
        let is_finished = matches!(string_at(live, "/status/phase"), "Succeeded" | "Failed");
        if string_at(live, "/spec/nodeName").is_empty() || is_finished {
            return 0;
        }
        let own = live.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        match requested.unwrap_or(own) {
            negative if negative < 0 => 1,
            seconds => seconds,
        }
    }

    fn is_deleted_gracefully(&self) -> bool {
        true
    }

    /// True if the pod has a node.
    fn is_marked_before_removal(&self, live: &Value) -> bool {
        !string_at(live, "/spec/nodeName").is_empty()
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

pub(super) struct PodTemplate;

impl Strategy for PodTemplate {
    fn name_errors(&self, name: &str) -> Vec<String> {
        path_segment_name_errors(name)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Checks that gates are only removed, and tolerations and node selectors only added.
fn scheduling_errors(live: &Value, object: &Value) -> Vec<FieldError> {
    let gates = array_at(live, "/spec/schedulingGates");
    let added = array_at(object, "/spec/schedulingGates").iter().find(|gate| !gates.contains(gate));
    let gate_error = added.map(|gate| {
        let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", string_at(gate, "/name"));
        FieldError::forbidden("spec.schedulingGates", &detail)
    });
    let without_time = |toleration: &Value| -> Map<String, Value> {
        let fields = toleration.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| *name != "tolerationSeconds")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let tolerations = |pod: &Value| array_at(pod, "/spec/tolerations").iter().map(without_time).collect::<Vec<_>>();
    let kept = tolerations(object);
    // Admission adds these two to every pod; a manifest does not have them.
    let is_added = |toleration: &Map<String, Value>| {
        let key = toleration.get("key").and_then(Value::as_str).unwrap_or_default();
        ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].contains(&key)
    };
    let removed = tolerations(live).iter().any(|toleration| !is_added(toleration) && !kept.contains(toleration));
    let toleration_error = removed.then(|| {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        FieldError::forbidden("spec.tolerations", detail)
    });
    let labels =
        |pod: &Value| pod.pointer("/spec/nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    let kept = labels(object);
    let is_narrower = labels(live).iter().all(|(name, value)| kept.get(name) == Some(value));
    let selector_error = (!gates.is_empty() && !is_narrower).then(|| {
        FieldError::invalid("spec.nodeSelector", &json!(kept), "only additions are allowed to spec.nodeSelector")
    });
    gate_error.into_iter().chain(toleration_error).chain(selector_error).collect()
}

/// Returns the QoS class of a pod.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["/spec/containers", "/spec/initContainers"].map(|pointer| array_at(pod, pointer)).concat();
    let amounts = |container: &Value, field: &str| -> Map<String, Value> {
        let amounts =
            container.pointer(&format!("/resources/{field}")).and_then(Value::as_object).cloned().unwrap_or_default();
        amounts
            .into_iter()
            .filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount != "0")
            .collect()
    };
    let is_best_effort =
        |container: &Value| amounts(container, "limits").is_empty() && amounts(container, "requests").is_empty();
    if containers.iter().all(is_best_effort) {
        return "BestEffort";
    }
    let is_guaranteed = |container: &Value| {
        let limits = amounts(container, "limits");
        limits.len() == 2 && limits == amounts(container, "requests")
    };
    if containers.iter().all(is_guaranteed) { "Guaranteed" } else { "Burstable" }
}
