//! Admission of pods: priorities, runtime classes and security levels.

use serde_json::{Value, json};

use crate::harness::{DEPLOYMENTS, MERGE, Machine, STRATEGIC, deployment};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(fields: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "nginx:1"}]});
    for (name, value) in fields.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})
}

fn refusal(machine: &mut Machine, fields: &Value) -> String {
    let refused = machine.post(PODS, &pod(fields));
    assert_eq!(refused.failure().0, 403, "{}", refused.body);
    refused.failure().2.trim_start_matches("pods \"one\" is forbidden: ").to_owned()
}

#[test]
fn a_priority_comes_from_its_class() {
    let mut machine = Machine::new();
    assert_eq!(
        refusal(&mut machine, &json!({"priorityClassName": "nope"})),
        "no PriorityClass with name nope was found"
    );
    let message = "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name";
    assert_eq!(refusal(&mut machine, &json!({"priority": 5})), message);
    let class = json!({"metadata": {"name": "usual"}, "value": 7, "globalDefault": true, "preemptionPolicy": "Never"});
    assert_eq!(machine.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class).status, 201);
    let spec = machine.post(PODS, &pod(&json!({}))).body["spec"].clone();
    assert_eq!(
        (&spec["priority"], &spec["priorityClassName"], &spec["preemptionPolicy"]),
        (&json!(7), &json!("usual"), &json!("Never"))
    );
}

#[test]
fn a_runtime_class_adds_its_overhead_and_scheduling() {
    let mut machine = Machine::new();
    assert_eq!(
        refusal(&mut machine, &json!({"runtimeClassName": "small"})),
        "pod rejected: RuntimeClass \"small\" not found"
    );
    let class = json!({
        "metadata": {"name": "small"}, "handler": "h", "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    });
    assert_eq!(machine.post("/apis/node.k8s.io/v1/runtimeclasses", &class).status, 201);
    let message = "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c";
    assert_eq!(refusal(&mut machine, &json!({"runtimeClassName": "small", "nodeSelector": {"a": "c"}})), message);
    let spec = machine.post(PODS, &pod(&json!({"runtimeClassName": "small"}))).body["spec"].clone();
    assert_eq!((&spec["overhead"], &spec["nodeSelector"]), (&json!({"cpu": "100m"}), &json!({"a": "b"})));
    assert_eq!(spec["tolerations"][2], json!({"key": "k", "operator": "Exists"}));
}

#[test]
fn a_namespace_enforces_a_security_level() {
    let mut machine = Machine::new();
    let label = |machine: &mut Machine, name: &str, level: &str| {
        let labels = json!({"metadata": {"labels": {format!("pod-security.kubernetes.io/{name}"): level}}});
        machine.patch("/api/v1/namespaces/default", MERGE, &labels)
    };
    let invalid = label(&mut machine, "enforce", "nonsense");
    assert_eq!(invalid.failure().0, 422, "{}", invalid.body);
    label(&mut machine, "enforce", "restricted");
    let message = "violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    assert_eq!(refusal(&mut machine, &json!({})), message);
    let safe = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let allowed = json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "nginx:1", "securityContext": safe}],
    });
    assert_eq!(machine.post(PODS, &pod(&allowed)).status, 201);
    label(&mut machine, "enforce", "baseline");
    let volumes = json!([{"name": "v", "hostPath": {"path": "/"}}]);
    let message = "violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true, hostIPC=true), hostPath volumes (volume \"v\")";
    assert_eq!(refusal(&mut machine, &json!({"hostPID": true, "hostIPC": true, "volumes": volumes})), message);
    // A pod template is not rejected.
    label(&mut machine, "enforce", "restricted");
    assert_eq!(machine.post(DEPLOYMENTS, &deployment("web")).status, 201);
}

const LIMITS: &str = "/api/v1/namespaces/default/limitranges";

#[test]
fn limit_ranges_bound_containers_pods_and_claims() {
    let mut machine = Machine::new();
    let range = |limit: Value| json!({"metadata": {"name": "bounds"}, "spec": {"limits": [limit]}});
    let with = |requests: Value, limits: Value| {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}});
        json!({ "containers": [container] })
    };
    let cases = [
        (
            json!({"type": "Container", "min": {"cpu": "200m"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}),
            with(json!({"cpu": "100m"}), json!({"cpu": "1"})),
            "minimum cpu usage per Container is 200m, but request is 100m",
        ),
        (
            json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
            with(json!({"cpu": "100m"}), json!({"cpu": "400m"})),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        ),
        (
            json!({"type": "Pod", "max": {"memory": "1Gi"}}),
            with(json!({}), json!({"memory": "2Gi"})),
            "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
        ),
        (
            json!({"type": "Pod", "max": {"memory": "1Gi"}}),
            with(json!({}), json!({})),
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
        ),
    ];
    for (limit, spec, expected) in cases {
        machine.post(LIMITS, &range(limit));
        assert_eq!(refusal(&mut machine, &spec), expected);
        machine.delete(&format!("{LIMITS}/bounds"));
    }
    machine.post(LIMITS, &range(json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}})));
    let claim = json!({
        "metadata": {"name": "one"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    let response = machine.post("/api/v1/namespaces/default/persistentvolumeclaims", &claim);
    assert!(
        response.failure().2.ends_with("maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi")
    );
}

#[test]
fn an_update_is_evaluated_by_pod_security_if_it_changes_containers() {
    let mut machine = Machine::new();
    machine.advance(1_000);
    let mut privileged = pod(&json!({}));
    privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    assert_eq!(machine.post(PODS, &privileged).status, 201);
    let label = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "baseline",
    }}});
    machine.patch("/api/v1/namespaces/default", MERGE, &label);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(machine.patch(&format!("{PODS}/one"), MERGE, &labels).status, 200, "no container changes");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}});
    let changed = machine.patch(&format!("{PODS}/one"), STRATEGIC, &image);
    assert_eq!(changed.failure().0, 403, "{}", changed.body);
    assert!(changed.failure().2.contains("violates PodSecurity \"baseline:latest\": privileged"));
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}});
    assert_eq!(machine.patch(&format!("{PODS}/one/ephemeralcontainers"), STRATEGIC, &debugger).status, 403);
    machine.post(DEPLOYMENTS, &deployment("web"));
    let template = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}});
    let request = machine.request(http::Method::PATCH, &format!("{DEPLOYMENTS}/web"), MERGE, &template);
    let response = machine.server.handle(machine.now, &request, None);
    let warning = response.header("warning").expect("a warning").to_owned();
    assert!(warning.contains("would violate PodSecurity"), "{warning}");
}
