//! Workload kinds. No controller runs, so that no pod is created.

use serde_json::{Value, json};

use super::kind::{ResourceKind, nothing};
use crate::generated::random::RandomSource;

pub(super) const KINDS: &[ResourceKind] = &[
    ResourceKind {
        name: "Deployment",
        api_version: "apps/v1",
        plural: "deployments",
        namespaced: true,
        custom: false,
        subresources: &["status", "scale"],
        content: deployment,
        status: replicas_status,
        weight: 10,
    },
    ResourceKind {
        name: "StatefulSet",
        api_version: "apps/v1",
        plural: "statefulsets",
        namespaced: true,
        custom: false,
        subresources: &["status", "scale"],
        content: stateful_set,
        status: replicas_status,
        weight: 3,
    },
    ResourceKind {
        name: "DaemonSet",
        api_version: "apps/v1",
        plural: "daemonsets",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: daemon_set,
        status: nothing,
        weight: 2,
    },
    ResourceKind {
        name: "CronJob",
        api_version: "batch/v1",
        plural: "cronjobs",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: cron_job,
        status: nothing,
        weight: 2,
    },
];

fn container(random: &mut RandomSource, name: &str) -> Value {
    let mut container = json!({"name": name, "image": random.one(&["a:1", "a:2", "b"])});
    random.maybe_set(40, &mut container, "ports", |random| {
        let ports = [
            json!({"containerPort": 80}),
            json!({"containerPort": 80, "protocol": "UDP"}),
            json!({"containerPort": 81, "name": "more"}),
        ];
        random.some(&ports, 50).into()
    });
    random.maybe_set(40, &mut container, "env", |random| {
        let mut variables: Vec<Value> = Vec::new();
        for name in random.some(&["A", "B", "C"], 50) {
            variables.push(json!({"name": name, "value": random.one(&["1", "2"])}));
        }
        if random.percent(20) {
            variables.push(json!({"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}));
        }
        variables.into()
    });
    random.maybe_set(30, &mut container, "resources", |random| {
        let amount = random.one(&["100m", "0.1", "1"]);
        random
            .one(&[json!({"limits": {"cpu": amount}}), json!({"requests": {"cpu": amount, "memory": "64Mi"}})])
            .clone()
    });
    random.maybe_set(20, &mut container, "args", |random| random.some(&["x", "y"], 60).into());
    random.maybe_set(20, &mut container, "readinessProbe", |random| {
        random.one(&[json!({"httpGet": {"port": 80}}), json!({"exec": {"command": ["true"]}})]).clone()
    });
    random.maybe_set(15, &mut container, "volumeMounts", |_| json!([{"name": "v", "mountPath": "/v"}]));
    random.maybe_set(10, &mut container, "securityContext", |random| json!({"runAsNonRoot": random.percent(50)}));
    container
}

fn template(random: &mut RandomSource) -> Value {
    let mut containers = vec![container(random, "a")];
    if random.percent(30) {
        containers.push(container(random, "b"));
    }
    let mounts = containers.iter().any(|container| container.get("volumeMounts").is_some());
    let mut spec = json!({ "containers": containers });
    random.maybe_set(if mounts { 95 } else { 20 }, &mut spec, "volumes", |random| {
        random
            .one(&[
                json!([{"name": "v"}]),
                json!([{"name": "v", "configMap": {"name": "a"}}]),
                json!([{"name": "v", "emptyDir": {}}]),
            ])
            .clone()
    });
    random.maybe_set(10, &mut spec, "nodeSelector", |_| json!({"disk": "a"}));
    random.maybe_set(10, &mut spec, "tolerations", |_| json!([{"key": "a", "operator": "Exists"}]));
    random.maybe_set(10, &mut spec, "serviceAccountName", |_| json!("a"));
    let mut labels = json!({"app": "a"});
    random.maybe_set(20, &mut labels, "tier", |_| json!("x"));
    json!({"metadata": {"labels": labels}, "spec": spec})
}

fn deployment(random: &mut RandomSource) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template(random)});
    random.maybe_set(50, &mut spec, "replicas", |random| json!(random.between(0, 3)));
    random.maybe_set(20, &mut spec, "strategy", |random| {
        let rolling =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": random.one(&[json!(1), json!("50%")])}});
        random.one(&[json!({"type": "Recreate"}), rolling]).clone()
    });
    random.maybe_set(15, &mut spec, "paused", |random| json!(random.percent(60)));
    random.maybe_set(15, &mut spec, "minReadySeconds", |random| json!(random.between(0, 5)));
    json!({ "spec": spec })
}

fn stateful_set(random: &mut RandomSource) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template(random), "serviceName": "a"});
    random.maybe_set(50, &mut spec, "replicas", |random| json!(random.between(0, 3)));
    random.maybe_set(20, &mut spec, "podManagementPolicy", |_| json!("Parallel"));
    random.maybe_set(20, &mut spec, "volumeClaimTemplates", |_| {
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        json!([{"metadata": {"name": "data"}, "spec": claim}])
    });
    json!({ "spec": spec })
}

fn daemon_set(random: &mut RandomSource) -> Value {
    json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template(random)}})
}

fn cron_job(random: &mut RandomSource) -> Value {
    let mut template = template(random);
    template["spec"]["restartPolicy"] = json!(random.one(&["OnFailure", "Never"]));
    let mut spec =
        json!({"schedule": random.one(&["0 * * * *", "*/5 * * * *"]), "jobTemplate": {"spec": {"template": template}}});
    random.maybe_set(30, &mut spec, "suspend", |random| json!(random.percent(50)));
    random.maybe_set(20, &mut spec, "concurrencyPolicy", |random| json!(random.one(&["Forbid", "Replace"])));
    json!({ "spec": spec })
}

fn replicas_status(random: &mut RandomSource) -> Value {
    let replicas = random.between(0, 3);
    let mut status = json!({"replicas": replicas});
    random.maybe_set(50, &mut status, "readyReplicas", |random| json!(random.between(0, replicas)));
    random.maybe_set(50, &mut status, "observedGeneration", |random| json!(random.between(1, 2)));
    random.maybe_set(40, &mut status, "conditions", |random| {
        let types = random.some(&["Available", "Progressing"], 60);
        let condition =
            |kind: &str, random: &mut RandomSource| json!({"type": kind, "status": random.one(&["True", "False"])});
        types.into_iter().map(|kind| condition(kind, random)).collect::<Vec<_>>().into()
    });
    status
}
