//! Kinds that make pods. No controller runs, so that nothing is made.

use serde_json::{Value, json};

use super::{Kind, nothing};
use crate::generated::dice::Dice;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "Deployment",
        api_version: "apps/v1",
        plural: "deployments",
        namespaced: true,
        custom: false,
        parts: &["status", "scale"],
        content: deployment,
        status: replicas_status,
        weight: 10,
    },
    Kind {
        name: "StatefulSet",
        api_version: "apps/v1",
        plural: "statefulsets",
        namespaced: true,
        custom: false,
        parts: &["status", "scale"],
        content: stateful_set,
        status: replicas_status,
        weight: 3,
    },
    Kind {
        name: "DaemonSet",
        api_version: "apps/v1",
        plural: "daemonsets",
        namespaced: true,
        custom: false,
        parts: &[],
        content: daemon_set,
        status: nothing,
        weight: 2,
    },
    Kind {
        name: "CronJob",
        api_version: "batch/v1",
        plural: "cronjobs",
        namespaced: true,
        custom: false,
        parts: &[],
        content: cron_job,
        status: nothing,
        weight: 2,
    },
];

fn container(dice: &mut Dice, name: &str) -> Value {
    let mut container = json!({"name": name, "image": dice.one(&["a:1", "a:2", "b"])});
    dice.maybe(40, &mut container, "ports", |dice| {
        let ports = [
            json!({"containerPort": 80}),
            json!({"containerPort": 80, "protocol": "UDP"}),
            json!({"containerPort": 81, "name": "more"}),
        ];
        dice.some(&ports, 50).into()
    });
    dice.maybe(40, &mut container, "env", |dice| {
        let mut variables: Vec<Value> = Vec::new();
        for name in dice.some(&["A", "B", "C"], 50) {
            variables.push(json!({"name": name, "value": dice.one(&["1", "2"])}));
        }
        if dice.percent(20) {
            variables.push(json!({"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}));
        }
        variables.into()
    });
    dice.maybe(30, &mut container, "resources", |dice| {
        let amount = dice.one(&["100m", "0.1", "1"]);
        dice.one(&[json!({"limits": {"cpu": amount}}), json!({"requests": {"cpu": amount, "memory": "64Mi"}})]).clone()
    });
    dice.maybe(20, &mut container, "args", |dice| dice.some(&["x", "y"], 60).into());
    dice.maybe(20, &mut container, "readinessProbe", |dice| {
        dice.one(&[json!({"httpGet": {"port": 80}}), json!({"exec": {"command": ["true"]}})]).clone()
    });
    dice.maybe(15, &mut container, "volumeMounts", |_| json!([{"name": "v", "mountPath": "/v"}]));
    dice.maybe(10, &mut container, "securityContext", |dice| json!({"runAsNonRoot": dice.percent(50)}));
    container
}

fn template(dice: &mut Dice) -> Value {
    let mut containers = vec![container(dice, "a")];
    if dice.percent(30) {
        containers.push(container(dice, "b"));
    }
    let mounts = containers.iter().any(|container| container.get("volumeMounts").is_some());
    let mut spec = json!({ "containers": containers });
    dice.maybe(if mounts { 95 } else { 20 }, &mut spec, "volumes", |dice| {
        dice.one(&[
            json!([{"name": "v"}]),
            json!([{"name": "v", "configMap": {"name": "a"}}]),
            json!([{"name": "v", "emptyDir": {}}]),
        ])
        .clone()
    });
    dice.maybe(10, &mut spec, "nodeSelector", |_| json!({"disk": "a"}));
    dice.maybe(10, &mut spec, "tolerations", |_| json!([{"key": "a", "operator": "Exists"}]));
    dice.maybe(10, &mut spec, "serviceAccountName", |_| json!("a"));
    let mut labels = json!({"app": "a"});
    dice.maybe(20, &mut labels, "tier", |_| json!("x"));
    json!({"metadata": {"labels": labels}, "spec": spec})
}

fn deployment(dice: &mut Dice) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template(dice)});
    dice.maybe(50, &mut spec, "replicas", |dice| json!(dice.between(0, 3)));
    dice.maybe(20, &mut spec, "strategy", |dice| {
        let rolling =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": dice.one(&[json!(1), json!("50%")])}});
        dice.one(&[json!({"type": "Recreate"}), rolling]).clone()
    });
    dice.maybe(15, &mut spec, "paused", |dice| json!(dice.percent(60)));
    dice.maybe(15, &mut spec, "minReadySeconds", |dice| json!(dice.between(0, 5)));
    json!({ "spec": spec })
}

fn stateful_set(dice: &mut Dice) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template(dice), "serviceName": "a"});
    dice.maybe(50, &mut spec, "replicas", |dice| json!(dice.between(0, 3)));
    dice.maybe(20, &mut spec, "podManagementPolicy", |_| json!("Parallel"));
    dice.maybe(20, &mut spec, "volumeClaimTemplates", |_| {
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        json!([{"metadata": {"name": "data"}, "spec": claim}])
    });
    json!({ "spec": spec })
}

fn daemon_set(dice: &mut Dice) -> Value {
    json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template(dice)}})
}

fn cron_job(dice: &mut Dice) -> Value {
    let mut template = template(dice);
    template["spec"]["restartPolicy"] = json!(dice.one(&["OnFailure", "Never"]));
    let mut spec =
        json!({"schedule": dice.one(&["0 * * * *", "*/5 * * * *"]), "jobTemplate": {"spec": {"template": template}}});
    dice.maybe(30, &mut spec, "suspend", |dice| json!(dice.percent(50)));
    dice.maybe(20, &mut spec, "concurrencyPolicy", |dice| json!(dice.one(&["Forbid", "Replace"])));
    json!({ "spec": spec })
}

fn replicas_status(dice: &mut Dice) -> Value {
    let replicas = dice.between(0, 3);
    let mut status = json!({"replicas": replicas});
    dice.maybe(50, &mut status, "readyReplicas", |dice| json!(dice.between(0, replicas)));
    dice.maybe(50, &mut status, "observedGeneration", |dice| json!(dice.between(1, 2)));
    dice.maybe(40, &mut status, "conditions", |dice| {
        let types = dice.some(&["Available", "Progressing"], 60);
        let condition = |kind: &str, dice: &mut Dice| json!({"type": kind, "status": dice.one(&["True", "False"])});
        types.into_iter().map(|kind| condition(kind, dice)).collect::<Vec<_>>().into()
    });
    status
}
