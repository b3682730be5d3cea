//! StatefulSets, DaemonSets, Jobs and CronJobs.

use serde_json::{Value, json};
use sindri_apiserver::{PodOutcome, PodRule};

use crate::harness::{MERGE, Machine};

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
const STATEFUL: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DAEMONS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

fn machine() -> Machine {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_workloads().with_kubelet(now, &["node-1", "node-2"]);
    machine
}

fn names(machine: &mut Machine, path: &str) -> Vec<String> {
    let body = machine.get(path).body;
    let items = body["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

fn template(app: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    })
}

fn stateful(replicas: i64) -> Value {
    json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": template("db"),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    })
}

fn job(name: &str, spec: &Value) -> Value {
    let mut job = json!({"metadata": {"name": name}, "spec": spec});
    job["spec"]["template"] = template(name);
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    job
}

fn condition(object: &Value, condition_type: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == condition_type).unwrap_or_default()
}

#[test]
fn a_stateful_set_starts_its_pods_in_order_and_keeps_names_and_claims() {
    let mut machine = machine();
    machine.post(STATEFUL, &stateful(3));
    machine.advance(700);
    assert_eq!(names(&mut machine, PODS), ["db-0", "db-1"], "the second waits for the first");
    machine.advance(5_000);
    assert_eq!(names(&mut machine, PODS), ["db-0", "db-1", "db-2"]);
    let claims = names(&mut machine, "/api/v1/namespaces/default/persistentvolumeclaims");
    assert_eq!(claims, ["data-db-0", "data-db-1", "data-db-2"]);
    let pod = machine.get(&format!("{PODS}/db-1")).body;
    assert_eq!(pod["spec"]["hostname"], "db-1");
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(machine.get(&format!("{STATEFUL}/db")).body["status"]["readyReplicas"], 3);
    machine.patch(&format!("{STATEFUL}/db"), MERGE, &json!({"spec": {"replicas": 1}}));
    machine.advance(5_000);
    assert_eq!(names(&mut machine, PODS), ["db-0"]);
    assert_eq!(names(&mut machine, "/api/v1/namespaces/default/persistentvolumeclaims").len(), 3, "claims stay");
}

#[test]
fn a_stateful_set_is_updated_from_the_last_pod_to_the_first() {
    let mut machine = machine();
    machine.post(STATEFUL, &stateful(2));
    machine.advance(5_000);
    let before = machine.get(&format!("{STATEFUL}/db")).body["status"]["currentRevision"].clone();
    let change = json!({"spec": {"template": {"metadata": {"labels": {"round": "2"}}}}});
    machine.patch(&format!("{STATEFUL}/db"), MERGE, &change);
    machine.advance(100);
    assert!(machine.get(&format!("{PODS}/db-1")).body["metadata"]["deletionTimestamp"].is_string());
    assert!(machine.get(&format!("{PODS}/db-0")).body["metadata"]["deletionTimestamp"].is_null());
    machine.advance(10_000);
    let live = machine.get(&format!("{STATEFUL}/db")).body;
    assert_eq!(live["status"]["updatedReplicas"], 2, "{live}");
    assert_eq!(live["status"]["currentRevision"], live["status"]["updateRevision"]);
    assert_ne!(live["status"]["currentRevision"], before);
}

#[test]
fn a_daemon_set_has_one_pod_on_each_node_and_replaces_them_one_at_a_time() {
    let mut machine = machine();
    let set = json!({
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent")},
    });
    machine.post(DAEMONS, &set);
    machine.advance(5_000);
    let live = machine.get(&format!("{DAEMONS}/agent")).body;
    assert_eq!(live["status"]["numberAvailable"], 2, "{live}");
    let body = machine.get(PODS).body;
    let nodes: Vec<&str> =
        body["items"].as_array().expect("a list").iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
    assert!(nodes.contains(&"node-1") && nodes.contains(&"node-2"), "{nodes:?}");
    let change = json!({"spec": {"template": {"metadata": {"labels": {"round": "2"}}}}});
    machine.patch(&format!("{DAEMONS}/agent"), MERGE, &change);
    for _ in 0..60 {
        machine.advance(50);
        let ready = machine.get(&format!("{DAEMONS}/agent")).body["status"]["numberReady"].as_i64();
        assert!(ready >= Some(1), "one at a time");
    }
    let live = machine.get(&format!("{DAEMONS}/agent")).body;
    assert_eq!(live["status"]["updatedNumberScheduled"], 2, "{live}");
}

#[test]
fn a_job_completes_after_the_requested_number_of_pods() {
    let mut machine = machine();
    machine.post(JOBS, &job("sum", &json!({"completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 60})));
    machine.advance(700);
    assert_eq!(machine.get(&format!("{JOBS}/sum")).body["status"]["active"], 2);
    machine.advance(10_000);
    let live = machine.get(&format!("{JOBS}/sum")).body;
    assert_eq!(live["status"]["succeeded"], 3, "{live}");
    assert_eq!(condition(&live, "Complete")["status"], "True");
    assert_eq!(names(&mut machine, PODS).len(), 3, "the pods are kept for inspection");
    machine.advance(120_000);
    assert_eq!(machine.get(&format!("{JOBS}/sum")).status, 404, "its time to live is over");
    assert!(names(&mut machine, PODS).is_empty());
}

#[test]
fn a_job_fails_after_its_backoff_limit() {
    let mut machine = machine();
    machine.server.add_pod_rule(machine.now, PodRule { outcome: PodOutcome::CrashLoop, ..PodRule::default() });
    machine.post(JOBS, &job("bad", &json!({"backoffLimit": 2})));
    machine.advance(5_000);
    assert_eq!(machine.get(&format!("{JOBS}/bad")).body["status"]["failed"], 1, "the next try waits");
    machine.advance(120_000);
    let live = machine.get(&format!("{JOBS}/bad")).body;
    assert_eq!(condition(&live, "Failed")["reason"], "BackoffLimitExceeded", "{live}");
    assert_eq!(live["status"]["failed"], 3);
}

#[test]
fn a_suspended_job_creates_no_pods_until_it_is_resumed() {
    let mut machine = machine();
    machine.post(JOBS, &job("later", &json!({"suspend": true, "completions": 2, "completionMode": "Indexed"})));
    machine.advance(5_000);
    let live = machine.get(&format!("{JOBS}/later")).body;
    assert_eq!(condition(&live, "Suspended")["status"], "True", "{live}");
    assert!(names(&mut machine, PODS).is_empty());
    machine.patch(&format!("{JOBS}/later"), MERGE, &json!({"spec": {"suspend": false}}));
    machine.advance(10_000);
    let live = machine.get(&format!("{JOBS}/later")).body;
    assert_eq!(live["status"]["completedIndexes"], "0,1", "{live}");
}

#[test]
fn a_cron_job_starts_jobs_on_time_and_limits_its_history() {
    let mut machine = machine();
    let spec = json!({"template": template("tick")});
    let mut cron = json!({
        "metadata": {"name": "tick"}, "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": spec}},
    });
    cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    machine.post(CRON_JOBS, &cron);
    machine.advance(9 * 60_000);
    assert!(names(&mut machine, JOBS).is_empty());
    machine.advance(90_000);
    assert_eq!(names(&mut machine, JOBS), ["tick-29453770"]);
    machine.advance(60 * 60_000);
    assert_eq!(names(&mut machine, JOBS).len(), 3, "three that succeeded are kept");
    let live = machine.get(&format!("{CRON_JOBS}/tick")).body;
    assert_eq!(live["status"]["lastScheduleTime"], "2026-01-01T01:10:00Z");
    let events = machine.get("/api/v1/namespaces/default/events").body;
    let completed = "Saw completed job: tick-29453770, condition: Complete";
    let mut events = events["items"].as_array().expect("a list").iter();
    assert!(events.any(|event| event["reason"] == "SawCompletedJob" && event["message"] == completed));
    machine.patch(&format!("{CRON_JOBS}/tick"), MERGE, &json!({"spec": {"suspend": true}}));
    let known = names(&mut machine, JOBS);
    machine.advance(60 * 60_000);
    assert_eq!(names(&mut machine, JOBS), known);
}

#[test]
fn a_cron_job_that_forbids_concurrency_never_runs_two_jobs_at_once() {
    let mut machine = machine();
    machine.server.add_pod_rule(machine.now, PodRule { outcome: PodOutcome::NeverReady, ..PodRule::default() });
    let mut cron =
        json!({"metadata": {"name": "slow"}, "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid"}});
    cron["spec"]["jobTemplate"] = json!({"spec": {"template": template("slow")}});
    cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    machine.post(CRON_JOBS, &cron);
    machine.advance(10 * 60_000);
    assert_eq!(names(&mut machine, JOBS).len(), 1);
    machine.patch(&format!("{CRON_JOBS}/slow"), MERGE, &json!({"spec": {"concurrencyPolicy": "Replace"}}));
    let before = names(&mut machine, JOBS);
    machine.advance(70_000);
    let after = names(&mut machine, JOBS);
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
}

/// A machine with a job whose pods run until they are deleted.
fn machine_with_unfinished_job() -> Machine {
    let mut machine = machine();
    machine.server.add_pod_rule(machine.now, PodRule { outcome: PodOutcome::KeepsRunning, ..PodRule::default() });
    assert_eq!(machine.post(JOBS, &job("long", &json!({"completions": 2, "parallelism": 2}))).status, 201);
    machine.advance(10_000);
    let running = machine.get(&format!("{JOBS}/long")).body;
    assert_eq!(running["status"]["ready"], 2, "{running}");
    machine
}

#[test]
fn an_unfinished_job_can_be_deleted_with_its_pods() {
    for policy in ["Background", "Foreground"] {
        let mut machine = machine_with_unfinished_job();
        let options = json!({"propagationPolicy": policy});
        assert_eq!(machine.delete_with(&format!("{JOBS}/long"), &options).status, 200);
        machine.advance(60_000);
        assert_eq!(machine.get(&format!("{JOBS}/long")).status, 404, "{policy}");
        assert_eq!(names(&mut machine, PODS), Vec::<String>::new(), "{policy}");
    }
}

#[test]
fn the_orphaned_pods_of_a_deleted_job_run_on_without_its_finalizer() {
    let mut machine = machine_with_unfinished_job();
    machine.delete_with(&format!("{JOBS}/long"), &json!({"propagationPolicy": "Orphan"}));
    machine.advance(60_000);
    assert_eq!(machine.get(&format!("{JOBS}/long")).status, 404);
    let pods = machine.get(PODS).body["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(pods.len(), 2);
    for pod in pods {
        assert!(pod["metadata"]["finalizers"].is_null(), "{pod}");
        assert_eq!(pod["status"]["phase"], "Running");
    }
}

#[test]
fn a_namespace_with_an_unfinished_job_is_deleted() {
    let mut machine = machine();
    machine.server.add_pod_rule(machine.now, PodRule { outcome: PodOutcome::KeepsRunning, ..PodRule::default() });
    machine.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}}));
    assert_eq!(machine.post("/apis/batch/v1/namespaces/shop/jobs", &job("long", &json!({}))).status, 201);
    machine.advance(10_000);
    assert_eq!(names(&mut machine, "/api/v1/namespaces/shop/pods").len(), 1);
    machine.delete("/api/v1/namespaces/shop");
    machine.advance(60_000);
    assert_eq!(machine.get("/api/v1/namespaces/shop").status, 404);
}

#[test]
fn a_pod_that_is_not_restarted_always_ends() {
    let mut machine = machine();
    for (policy, phase) in [("Never", "Succeeded"), ("OnFailure", "Succeeded"), ("Always", "Running")] {
        let mut pod = template("once");
        pod["metadata"]["name"] = json!(policy.to_lowercase());
        pod["spec"]["restartPolicy"] = json!(policy);
        assert_eq!(machine.post(PODS, &pod).status, 201);
        machine.advance(30_000);
        let pod = machine.get(&format!("{PODS}/{}", policy.to_lowercase())).body;
        assert_eq!(pod["status"]["phase"], phase, "{policy}");
    }
}

#[test]
fn a_job_fails_after_its_deadline_once_its_pods_are_gone() {
    let mut machine = machine_with_unfinished_job();
    machine.patch(&format!("{JOBS}/long"), MERGE, &json!({"spec": {"activeDeadlineSeconds": 20}}));
    let mut waited = false;
    for _ in 0..400 {
        machine.advance(50);
        let live = machine.get(&format!("{JOBS}/long")).body;
        let is_over = condition(&live, "Failed") != Value::Null;
        let terminating = live["status"]["terminating"].as_i64().unwrap_or_default();
        waited |= terminating > 0 && condition(&live, "FailureTarget")["status"] == "True";
        assert!(!(is_over && terminating > 0), "it is not over before its pods are gone: {live}");
    }
    assert!(waited, "the decision comes before the end");
    let live = machine.get(&format!("{JOBS}/long")).body;
    assert_eq!(condition(&live, "Failed")["reason"], "DeadlineExceeded", "{live}");
    assert_eq!((&live["status"]["failed"], live["status"].get("active")), (&json!(2), None));
}

#[test]
fn surplus_pods_of_a_job_do_not_count_as_failed() {
    let mut machine = machine_with_unfinished_job();
    machine.patch(&format!("{JOBS}/long"), MERGE, &json!({"spec": {"parallelism": 1}}));
    machine.advance(5_000);
    let live = machine.get(&format!("{JOBS}/long")).body;
    assert_eq!((&live["status"]["active"], live["status"].get("failed")), (&json!(1), None), "{live}");
    assert_eq!(names(&mut machine, PODS).len(), 1);
}

#[test]
fn a_suspended_job_keeps_its_start_time_until_it_is_resumed() {
    let mut machine = machine_with_unfinished_job();
    let started = machine.get(&format!("{JOBS}/long")).body["status"]["startTime"].clone();
    machine.patch(&format!("{JOBS}/long"), MERGE, &json!({"spec": {"suspend": true}}));
    machine.advance(5_000);
    let live = machine.get(&format!("{JOBS}/long")).body;
    assert_eq!((&live["status"]["startTime"], live["status"].get("failed")), (&started, None));
    machine.patch(&format!("{JOBS}/long"), MERGE, &json!({"spec": {"suspend": false}}));
    machine.advance(5_000);
    let live = machine.get(&format!("{JOBS}/long")).body;
    assert_ne!(live["status"]["startTime"], started);
    assert_eq!(condition(&live, "Suspended")["reason"], "JobResumed");
}

#[test]
fn invalid_jobs_are_rejected() {
    let mut machine = machine();
    let cases = [
        (json!({"parallelism": -1}), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        (
            json!({"completionMode": "Indexed", "parallelism": 1}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            json!({"completionMode": "Sorted"}),
            "spec.completionMode: Unsupported value: \"Sorted\": supported values: \"NonIndexed\", \"Indexed\"",
        ),
        (
            json!({"podReplacementPolicy": "Never"}),
            "spec.podReplacementPolicy: Unsupported value: \"Never\": supported values: \"Failed\", \"TerminatingOrFailed\"",
        ),
    ];
    for (spec, expected) in cases {
        let response = machine.post(JOBS, &job("wrong", &spec));
        assert_eq!(response.status, 422, "{spec}");
        let message = response.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(expected), "{message}");
    }
    machine.post(
        JOBS,
        &job("elastic", &json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "suspend": true})),
    );
    let change = |spec: Value| json!({ "spec": spec });
    let elastic = format!("{JOBS}/elastic");
    assert_eq!(machine.patch(&elastic, MERGE, &change(json!({"completions": 3}))).status, 422);
    assert_eq!(machine.patch(&elastic, MERGE, &change(json!({"completions": 3, "parallelism": 3}))).status, 200);
    let selector = json!({"template": {"spec": {"nodeSelector": {"zone": "a"}}}});
    assert_eq!(machine.patch(&elastic, MERGE, &change(selector.clone())).status, 200, "it has not started");
    machine.patch(&elastic, MERGE, &change(json!({"suspend": false})));
    machine.advance(1_000);
    let other = json!({"template": {"spec": {"nodeSelector": {"zone": "b"}}}});
    assert_eq!(machine.patch(&elastic, MERGE, &change(other)).status, 422);
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    let mut machine = Machine::new();
    let now = machine.now;
    machine.server = machine.server.with_workloads().with_kubelet(now, &["node-1"]);
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox"}]}});
    let job = json!({"metadata": {"name": "remote"}, "spec": {"managedBy": "example.io/queue", "template": template}});
    assert_eq!(machine.post("/apis/batch/v1/namespaces/default/jobs", &job).status, 201);
    machine.advance(60_000);
    assert_eq!(machine.get("/api/v1/namespaces/default/pods").body["items"], json!([]));
}
