//! NetworkPolicy.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at, value_at};
use crate::strategy::checks::ports::{check_number, port_name_errors};
use crate::strategy::{EmptyValue, Strategy, is_changed};

/// JSON pointer to the labels that select pods.
const POD_LABELS: &str = "/spec/podSelector/matchLabels";

pub(super) struct NetworkPolicy;

impl Strategy for NetworkPolicy {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
            for (index, rule) in array_at(object, &format!("/spec/{direction}")).iter().enumerate() {
                let path = format!("spec.{direction}[{index}]");
                for (index, port) in array_at(rule, "/ports").iter().enumerate() {
                    errors.extend(check_policy_port(port, &format!("{path}.ports[{index}]")));
                }
                for (index, peer) in array_at(rule, &format!("/{peers}")).iter().enumerate() {
                    errors.extend(check_peer(peer, &format!("{path}.{peers}[{index}]")));
                }
            }
        }
        let policy_types = array_at(object, "/spec/policyTypes");
        if policy_types.len() > 2 {
            let detail = "may not specify more than two policyTypes";
            errors.push(FieldError::invalid("spec.policyTypes", &json!(policy_types), detail));
            return errors;
        }
        for (index, policy_type) in policy_types.iter().enumerate() {
            if !matches!(policy_type.as_str(), Some("Ingress" | "Egress")) {
                let supported = ["\"Ingress\"", "\"Egress\""].map(str::to_owned);
                errors.push(FieldError::unsupported(format!("spec.policyTypes[{index}]"), policy_type, &supported));
            }
        }
        errors
    }

    /// The real server checks twice.
    fn validate_update(&self, _live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        self.validate(object)
    }

    /// Absent labels that become an empty map are a change.
    fn changes_desired_state(&self, live: &Value, object: &Value, empty_values: &[EmptyValue]) -> bool {
        let becomes_empty =
            value_at(live, POD_LABELS).is_none() && empty_values.iter().any(|empty| empty.pointer == POD_LABELS);
        becomes_empty || is_changed(live, object, "/spec")
    }
}

fn check_policy_port(port: &Value, path: &str) -> Vec<FieldError> {
    match port.get("port") {
        Some(Value::Number(number)) => {
            check_number(format!("{path}.port"), number.as_i64().unwrap_or_default()).into_iter().collect()
        }
        Some(Value::String(name)) => port_name_errors(name)
            .iter()
            .map(|detail| FieldError::invalid(format!("{path}.port"), &json!(name), detail))
            .collect(),
        _ => Vec::new(),
    }
}

fn check_peer(peer: &Value, path: &str) -> Vec<FieldError> {
    let has = |name: &str| peer.get(name).is_some_and(|part| !part.is_null());
    let has_selector = has("podSelector") || has("namespaceSelector");
    let mut errors = Vec::new();
    if has("ipBlock") && string_at(peer, "/ipBlock/cidr").is_empty() {
        errors.push(FieldError::required(format!("{path}.ipBlock.cidr"), ""));
    }
    if !has_selector && !has("ipBlock") {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if has_selector && has("ipBlock") {
        errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
    }
    errors
}
