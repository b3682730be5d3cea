//! Every kind: just created, progressing, done, failed. The objects are in `tests/objects`, one file per area.

use serde_json::Value;
use sindri_health::{assess, explain};

/// Returns the case and the health of each object of a file.
fn describe_objects(text: &str) -> String {
    let documents = sindri_model::yaml::parse_documents(text).expect("the objects are YAML");
    let lines = documents.iter().map(|document| {
        let content = &document.content;
        let case = content["case"].as_str().expect("every object has a case");
        let pods = content["pods"].as_array().cloned().unwrap_or_default();
        let object: &Value = &content["object"];
        assert!(object.is_object(), "{case}");
        let health = explain(assess(object), &pods);
        let message = if health.message.is_empty() { String::new() } else { format!(": {}", health.message) };
        format!("{case}\n    {} {}{message}", health.state, health.reason)
    });
    lines.collect::<Vec<_>>().join("\n")
}

macro_rules! files {
    ($($test:ident $file:literal)*) => { $(
        #[test]
        fn $test() {
            insta::assert_snapshot!($file, describe_objects(include_str!(concat!("../objects/", $file, ".yaml"))));
        }
    )* };
}

files! {
    a_deployment_is_ready_when_its_rollout_is_done "deployment"
    a_stateful_set_is_ready_when_every_pod_is_of_its_revision "statefulset"
    a_daemon_set_is_ready_when_every_node_has_its_pod "daemonset"
    a_replica_set_is_ready_when_its_pods_are_available "replicaset"
    a_job_is_ready_when_it_is_complete "job"
    a_pod_is_ready_when_it_is_running_and_ready_or_has_succeeded "pod"
    a_claim_is_ready_when_it_is_bound "storage"
    a_load_balancer_is_ready_when_it_has_an_address "network"
    a_custom_resource_definition_is_ready_when_it_is_established "cluster"
    an_autoscaler_is_ready_when_it_can_scale "scaling"
    other_kinds_are_ready_by_their_conditions "other"
}
