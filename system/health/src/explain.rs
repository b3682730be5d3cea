//! Explains an object that is not ready by the state of its pods.

use std::cmp::Reverse;

use serde_json::Value;

use crate::health::{Health, truncate};
use crate::object::Object;
use crate::pods::{self, PodProblem, Severity};

/// Maximum length of the object's own message before the message about its pod.
const OBJECT_MESSAGE_CHARACTERS_MAX: usize = 300;

/// Adds the reason and message of the worst pod to an object that is not ready; of equals, the first by name. The state
/// stays the same: the object's controller may still replace a failed pod.
pub fn explain(health: Health, pods: &[Value]) -> Health {
    if health.state == crate::HealthState::Ready {
        return health;
    }
    let mut problems: Vec<(&str, PodProblem)> = pods.iter().map(Object).filter_map(find_problem).collect();
    problems.sort_by(|(left_name, left), (right_name, right)| {
        let rank = |problem: &PodProblem| Reverse((problem.severity, problem.state));
        rank(left)
            .cmp(&rank(right))
            .then_with(|| left_name.cmp(right_name))
            .then_with(|| left.message.cmp(&right.message))
    });
    let Some((name, problem)) = problems.first() else { return health };
    let others = match problems.len() - 1 {
        0 => String::new(),
        1 => " (and one more pod)".to_owned(),
        more => format!(" (and {more} more pods)"),
    };
    let own = if health.message.is_empty() {
        String::new()
    } else {
        format!("{}; ", truncate(&health.message, OBJECT_MESSAGE_CHARACTERS_MAX))
    };
    Health::new(health.state, &problem.reason, format!("{own}pod {name}{others}: {}", problem.message))
}

/// Returns the problem of a pod that is not ready, unless the pod is starting or terminating.
fn find_problem(pod: Object<'_>) -> Option<(&str, PodProblem)> {
    let is_done = pod.text(&["status", "phase"]) == Some("Succeeded");
    if is_done || pod.is_being_deleted() || (pods::is_ready(pod) && !pods::has_ended(pod)) {
        return None;
    }
    let problem = pods::find_problem(pod);
    (problem.severity > Severity::Starting).then(|| (pod.name(), problem))
}
