//! Documents of random bundles, one function per kind.

use serde_json::{Value, json};

use super::pools::{INVALID_ANNOTATION, SECRET_CANARY, choose, choose_weighted};
use crate::rng::SeededRng;

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    ConfigMap,
    Secret,
    Service,
    ServiceAccount,
    Role,
    ClusterRole,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    PersistentVolumeClaim,
    StorageClass,
    Namespace,
    CustomResourceDefinition,
    Widget,
    UnknownKind,
    Invalid,
}

use DocumentKind::{
    ClusterRole, ConfigMap, CronJob, CustomResourceDefinition, DaemonSet, Deployment, Invalid, Job, Namespace,
    PersistentVolumeClaim, Role, Secret, Service, ServiceAccount, StatefulSet, StorageClass, UnknownKind, Widget,
};

const WEIGHTS: [(u64, DocumentKind); 18] = [
    (24, ConfigMap),
    (10, Secret),
    (6, Service),
    (3, ServiceAccount),
    (2, Role),
    (3, ClusterRole),
    (8, Deployment),
    (3, StatefulSet),
    (2, DaemonSet),
    (3, Job),
    (2, CronJob),
    (3, PersistentVolumeClaim),
    (2, StorageClass),
    (9, Namespace),
    (5, CustomResourceDefinition),
    (8, Widget),
    (1, UnknownKind),
    (1, Invalid),
];

/// Chooses a kind.
pub fn choose_kind(rng: &mut SeededRng) -> DocumentKind {
    choose_weighted(rng, &WEIGHTS)
}

/// Makes a document of a kind. Namespaces and CRDs have fixed names, so that other documents can refer to them.
pub fn make_document(rng: &mut SeededRng, kind: DocumentKind, namespace: &str, name: &str) -> Value {
    let number = rng.between(0, 9).to_string();
    let mut document = match kind {
        ConfigMap => json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": number}}),
        Secret => make_secret(rng, &number),
        Service => json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"selector": {"app": name}, "ports": [{"port": 80 + rng.between(0, 5)}]},
        }),
        ServiceAccount => json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
        Role | ClusterRole => json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": if kind == Role { "Role" } else { "ClusterRole" },
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [if rng.chance(1, 2) { "get" } else { "list" }]}],
        }),
        Deployment | StatefulSet | DaemonSet => make_workload(rng, kind, name, &number),
        Job => {
            json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod_template(name, "Never", &number)}})
        }
        CronJob => json!({
            "apiVersion": "batch/v1", "kind": "CronJob",
            "spec": {
                "schedule": "0 3 * * *",
                "jobTemplate": {"spec": {"template": pod_template(name, "Never", &number)}},
            },
        }),
        PersistentVolumeClaim => json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }),
        StorageClass => json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "provisioner": if rng.chance(1, 6) { "example.com/other" } else { "example.com/disk" },
        }),
        Namespace => return json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        CustomResourceDefinition => return make_crd(),
        Widget => json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": rng.between(1, 9)}}),
        UnknownKind => json!({"apiVersion": "example.com/v1", "kind": "Gadget", "spec": {}}),
        Invalid => json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"annotations": {INVALID_ANNOTATION: "true"}},
            "spec": {"ports": [{"port": 700_000}]},
        }),
    };
    document["metadata"]["name"] = json!(name);
    let is_namespace_left_out = namespace == "default" && rng.chance(1, 2);
    if !matches!(kind, ClusterRole | StorageClass) && !is_namespace_left_out {
        document["metadata"]["namespace"] = json!(namespace);
    }
    document
}

fn make_secret(rng: &mut SeededRng, number: &str) -> Value {
    let mut secret =
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"n": format!("{SECRET_CANARY}{number}")}});
    if rng.chance(1, 8) {
        secret["type"] = json!(choose(rng, &["example.com/one", "example.com/two"]));
    }
    if rng.chance(1, 10) {
        secret["immutable"] = json!(true);
    }
    secret
}

fn make_workload(rng: &mut SeededRng, kind: DocumentKind, name: &str, number: &str) -> Value {
    // The selector of a workload is immutable: seldom another one.
    let app = if rng.chance(1, 8) { format!("{name}-{number}") } else { name.to_owned() };
    let mut template = pod_template(&app, "Always", number);
    template["metadata"]["labels"]["app"] = json!(app);
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": format!("{kind:?}"),
        "spec": {"selector": {"matchLabels": {"app": app}}, "template": template},
    });
    if kind != DaemonSet {
        workload["spec"]["replicas"] = json!(rng.between(0, 2));
    }
    if kind == StatefulSet {
        workload["spec"]["serviceName"] = json!(name);
    }
    workload
}

fn pod_template(app: &str, restart: &str, number: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": format!("example.com/app:{number}")}]},
    })
}

fn make_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
