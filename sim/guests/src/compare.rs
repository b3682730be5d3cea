//! Compares a live object with its desired state, and merges the desired state into it.
//!
//! Only fields of the desired state count: fields that the server or another client has added are kept.

use serde_json::Value;

/// Returns true if a live object has every desired field.
pub fn covers(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(field, desired)| live.get(field).is_some_and(|live| covers(live, desired)))
        }
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len() && live.iter().zip(desired).all(|(live, desired)| covers(live, desired))
        }
        _ => live == desired,
    }
}

/// Overwrites the desired fields of a live object.
pub fn overlay(live: &mut Value, desired: &Value) {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            for (field, desired) in desired {
                overlay(live.entry(field).or_insert(Value::Null), desired);
            }
        }
        (Value::Array(live), Value::Array(desired)) if live.len() == desired.len() => {
            live.iter_mut().zip(desired).for_each(|(live, desired)| overlay(live, desired));
        }
        (live, desired) => *live = desired.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_other_clients_are_no_difference_and_are_kept() {
        let desired = json!({"spec": {"replicas": 2, "ports": [{"port": 1}]}});
        let mut live = json!({"spec": {"replicas": 1, "paused": false, "ports": [{"port": 1, "protocol": "TCP"}]}});
        assert!(!covers(&live, &desired));
        overlay(&mut live, &desired);
        assert!(covers(&live, &desired));
        assert_eq!(live, json!({"spec": {"replicas": 2, "paused": false, "ports": [{"port": 1, "protocol": "TCP"}]}}));
    }

    #[test]
    fn a_list_that_is_longer_than_desired_is_replaced() {
        let desired = json!({"ports": [{"port": 1}]});
        let mut live = json!({"ports": [{"port": 1}, {"port": 2}]});
        assert!(!covers(&live, &desired));
        overlay(&mut live, &desired);
        assert_eq!(live, desired);
    }
}
