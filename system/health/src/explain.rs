//! What the pods of an object say about why it is not ready.

use std::cmp::Reverse;

use serde_json::Value;

use crate::health::{Health, cut};
use crate::object::Object;
use crate::pods::{self, Grade, Trouble};

/// The longest part of a message that is the object's own.
const OWN_CHARACTERS_MAX: usize = 300;

/// Gives an object that is not ready the reason and the words of its worst pod; of equals the first by name. The state
/// stays: whether an object has failed is for its controller to say, which may still replace that pod.
pub fn explain(health: Health, pods: &[Value]) -> Health {
    if health.state == crate::HealthState::Ready {
        return health;
    }
    let mut troubles: Vec<(&str, Trouble)> = pods.iter().map(Object).filter_map(in_trouble).collect();
    troubles.sort_by(|(left_name, left), (right_name, right)| {
        let rank = |trouble: &Trouble| Reverse((trouble.grade, trouble.state));
        rank(left)
            .cmp(&rank(right))
            .then_with(|| left_name.cmp(right_name))
            .then_with(|| left.message.cmp(&right.message))
    });
    let Some((name, trouble)) = troubles.first() else { return health };
    let others = match troubles.len() - 1 {
        0 => String::new(),
        1 => " (and one more pod)".to_owned(),
        more => format!(" (and {more} more pods)"),
    };
    let own = if health.message.is_empty() {
        String::new()
    } else {
        format!("{}; ", cut(&health.message, OWN_CHARACTERS_MAX))
    };
    Health::new(health.state, &trouble.reason, format!("{own}pod {name}{others}: {}", trouble.message))
}

/// A pod that is not well, unless it has just begun or is on its way out.
fn in_trouble(pod: Object<'_>) -> Option<(&str, Trouble)> {
    let is_done = pod.text(&["status", "phase"]) == Some("Succeeded");
    if is_done || pod.is_being_deleted() || (pods::is_ready(pod) && !pods::has_ended(pod)) {
        return None;
    }
    let trouble = pods::trouble(pod);
    (trouble.grade > Grade::Starting).then(|| (pod.name(), trouble))
}
