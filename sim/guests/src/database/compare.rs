//! Whether an object is as it should be, and how to make it so. Only what is wanted counts: what the server filled
//! in, or somebody else added, is no difference and is kept.

use serde_json::Value;

/// Whether a live object has everything that is wanted.
pub fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| live.get(field).is_some_and(|live| covers(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        _ => live == wanted,
    }
}

/// Puts what is wanted over a live object.
pub fn overlay(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (field, wanted) in wanted {
                overlay(live.entry(field).or_insert(Value::Null), wanted);
            }
        }
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            live.iter_mut().zip(wanted).for_each(|(live, wanted)| overlay(live, wanted));
        }
        (live, wanted) => *live = wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_added_is_no_difference_and_stays() {
        let wanted = json!({"spec": {"replicas": 2, "ports": [{"port": 1}]}});
        let mut live = json!({"spec": {"replicas": 1, "paused": false, "ports": [{"port": 1, "protocol": "TCP"}]}});
        assert!(!covers(&live, &wanted));
        overlay(&mut live, &wanted);
        assert!(covers(&live, &wanted));
        assert_eq!(live, json!({"spec": {"replicas": 2, "paused": false, "ports": [{"port": 1, "protocol": "TCP"}]}}));
    }

    #[test]
    fn a_list_that_is_longer_than_wanted_differs_and_is_replaced() {
        let wanted = json!({"ports": [{"port": 1}]});
        let mut live = json!({"ports": [{"port": 1}, {"port": 2}]});
        assert!(!covers(&live, &wanted));
        overlay(&mut live, &wanted);
        assert_eq!(live, wanted);
    }
}
