//! Goals of random worlds: situations that enough worlds reach. One that is never reached shows what the worlds do not test.

use std::collections::BTreeMap;

use sindri_world::scenario::{Scenario, Step};

use crate::steps::{begins_fault, ends_fault, is_operation};

/// Operations of operators, who wait until the brokers work.
const OF_OPERATORS: [&str; 11] = [
    "submit",
    "delete",
    "target",
    "untarget",
    "label",
    "unlabel",
    "annotate",
    "approve",
    "activate",
    "delete_agent",
    "create_agent",
];
/// Operations of people in the clusters.
const OF_PEOPLE: [&str; 3] = ["create", "edit", "remove"];
/// Faults during which operations happen.
const FAULTS: [&str; 6] = ["kill agent", "kill API server", "partition", "latency", "fail", "restore_etcd"];
const BROKER_FAULTS: [&str; 2] = ["kill broker", "stall"];
/// Operations that the restore of the broker's backup undoes.
const FORGOTTEN: [&str; 5] = ["submit", "delete", "target", "untarget", "annotate"];
/// Requests of a pass and of leader election, each with words of their lines in the trace.
const PHASES: [(&str, &[&str]); 8] = [
    ("discovery", &["GET /api"]),
    ("Lease", &["/leases/"]),
    ("inventory", &["PATCH", "configmaps/inventory-"]),
    ("dry run", &["PATCH", " dry-run "]),
    ("apply", &["PATCH"]),
    ("delete", &["DELETE"]),
    ("list or read", &["GET"]),
    ("create", &["POST"]),
];
/// Results of requests.
const RESULTS: [&str; 6] = ["success", "conflict", "throttled", "client error", "server error", "cut"];

/// Number of times that each goal was reached.
pub struct Goals(BTreeMap<String, u64>);

impl Default for Goals {
    fn default() -> Self {
        let operations = OF_OPERATORS.into_iter().chain(OF_PEOPLE);
        let during = operations.flat_map(|operation| FAULTS.map(|fault| name_pair(operation, fault)));
        let of_brokers =
            OF_PEOPLE.into_iter().flat_map(|operation| BROKER_FAULTS.map(|fault| name_pair(operation, fault)));
        let forgotten = FORGOTTEN.map(|operation| name_pair(operation, "restore"));
        let during = during.chain(of_brokers).chain(forgotten);
        let results = PHASES.into_iter().flat_map(|(phase, _)| RESULTS.map(|result| name_result(phase, result)));
        Self(during.chain(results).map(|goal| (goal, 0)).collect())
    }
}

fn name_pair(operation: &str, fault: &str) -> String {
    format!("{operation} during {fault}")
}

fn name_result(phase: &str, result: &str) -> String {
    format!("{phase}: {result}")
}

impl Goals {
    /// Adds the goals that a world reached.
    pub fn add(&mut self, world: &Scenario, trace: &[String]) {
        let mut faults: Vec<(&'static str, &Step)> = Vec::new();
        for (_, step) in world.steps.iter() {
            faults.retain(|(_, begun)| !ends_fault(begun, step));
            if is_operation(step) {
                for (fault, _) in &faults {
                    self.reach(&name_pair(&step.name(), fault));
                }
            }
            faults.extend(begins_fault(step).map(|fault| (fault, step)));
        }
        for line in trace {
            if let Some((phase, result)) = classify(line) {
                self.reach(&name_result(phase, result));
            }
        }
    }

    fn reach(&mut self, goal: &str) {
        if let Some(count) = self.0.get_mut(goal) {
            *count += 1;
        }
    }

    /// Lists the goals with their numbers.
    pub fn list(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(goal, count)| (goal.as_str(), *count))
    }

    /// Lists the goals that no world reached.
    pub fn unreached(&self) -> Vec<&str> {
        self.list().filter(|(_, count)| *count == 0).map(|(goal, _)| goal).collect()
    }
}

/// Returns phase and result of a request to an API server; none for another line.
fn classify(line: &str) -> Option<(&'static str, &'static str)> {
    let (host, request) = line.split_once(" < ")?;
    if !host.trim_end().ends_with("-api") {
        return None;
    }
    let (phase, _) = PHASES.iter().find(|(_, words)| words.iter().all(|word| has_words(request, word)))?;
    let result = match request.rsplit(' ').next()? {
        "cut" => "cut",
        "409" => "conflict",
        "429" => "throttled",
        status => match status.bytes().next()? {
            b'2' => "success",
            b'4' => "client error",
            b'5' => "server error",
            _ => return None,
        },
    };
    Some((phase, result))
}

/// Returns true if a request has some words; a method stands at its beginning. `GET /api` is only the list of groups.
fn has_words(request: &str, words: &str) -> bool {
    match words {
        "GET /api" => request.starts_with("GET /api ") || request.starts_with("GET /apis "),
        _ if words.bytes().all(|byte| byte.is_ascii_uppercase()) => request.starts_with(words),
        _ => request.contains(words),
    }
}

#[cfg(test)]
mod tests {
    use sindri_world::worlds::generate;

    use super::*;

    #[test]
    fn requests_are_classified_by_phase_and_result() {
        let line = |request: &str| classify(&format!("t+00:31.260 e00416  east-api   < {request}"));
        assert_eq!(line("GET /apis 200"), Some(("discovery", "success")));
        assert_eq!(line("PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/b 409"), Some(("Lease", "conflict")));
        assert_eq!(
            line("PATCH /api/v1/namespaces/a/configmaps/inventory-1-0 503"),
            Some(("inventory", "server error"))
        );
        assert_eq!(line("PATCH /api/v1/namespaces/a/configmaps/b dry-run 422"), Some(("dry run", "client error")));
        assert_eq!(line("PATCH /api/v1/namespaces/a/configmaps/b cut"), Some(("apply", "cut")));
        assert_eq!(line("DELETE /api/v1/namespaces/a 429"), Some(("delete", "throttled")));
        assert_eq!(classify("t+00:31.230 e00413  broker     < east POST /api/v1/agents/1/events 201"), None);
    }

    #[test]
    fn an_operation_counts_for_the_faults_that_last() {
        let mut goals = Goals::default();
        (1..=100).for_each(|seed| goals.add(&generate(seed), &[]));
        let reached = |goal: &str| goals.list().any(|(known, count)| known == goal && count > 0);
        assert!(reached("submit during fail") && reached("edit during partition"));
        assert!(goals.unreached().contains(&"apply: success"), "there was no trace");
    }
}
