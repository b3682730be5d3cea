//! HorizontalPodAutoscaler.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::registry::types::SchemaType;
use crate::strategy::Strategy;
use crate::strategy::default_values::{map_field, set_default};

pub(super) struct HorizontalPodAutoscaler;

impl Strategy for HorizontalPodAutoscaler {
    fn set_defaults(&self, schema_type: &SchemaType, object: &mut Value) {
        // autoscaling/v1 has no metrics.
        if !has_metrics(schema_type) || object.pointer("/spec/targetCPUUtilizationPercentage").is_some() {
            return;
        }
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
        if let Some(spec) = object.get_mut("spec").filter(|spec| spec.get("scaleTargetRef").is_some()) {
            set_default(spec, "metrics", metric);
            map_field(spec, "behavior").into_iter().for_each(set_behavior_defaults);
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let number = |name: &str| object["spec"].get(name).and_then(Value::as_i64).unwrap_or_default();
        let (max, min) = (number("maxReplicas"), number("minReplicas"));
        let mut errors = Vec::new();
        if max < 1 {
            errors.push(FieldError::invalid("spec.maxReplicas", &json!(max), "must be greater than 0"));
        }
        if max < min {
            let detail = "must be greater than or equal to `minReplicas`";
            errors.push(FieldError::invalid("spec.maxReplicas", &json!(max), detail));
        }
        let reference = |name: &str| string_at(object, &format!("/spec/scaleTargetRef/{name}"));
        for field in ["kind", "name"] {
            if reference(field).is_empty() {
                errors.push(FieldError::required(format!("spec.scaleTargetRef.{field}"), ""));
            }
        }
        if reference("apiVersion").is_empty() {
            let detail = "apiVersion must specify API group";
            errors.push(FieldError::invalid("spec.scaleTargetRef.apiVersion", &json!(""), detail));
        }
        errors
    }
}

/// Sets the defaults of the scaling behavior of an autoscaler.
fn set_behavior_defaults(behavior: &mut Value) {
    let policy = |policy_type: &str, value: u32| json!({"type": policy_type, "value": value, "periodSeconds": 15});
    let directions = [
        ("scaleUp", json!([policy("Pods", 4), policy("Percent", 100)]), Some(0)),
        ("scaleDown", json!([policy("Percent", 100)]), None),
    ];
    for (direction, policies, window) in directions {
        set_default(behavior, direction, json!({}));
        let rules = &mut behavior[direction];
        set_default(rules, "selectPolicy", json!("Max"));
        set_default(rules, "policies", policies);
        if let Some(window) = window {
            set_default(rules, "stabilizationWindowSeconds", json!(window));
        }
    }
}

fn has_metrics(schema_type: &SchemaType) -> bool {
    schema_type.field("spec").is_some_and(|spec| spec.field_type().field("metrics").is_some())
}
