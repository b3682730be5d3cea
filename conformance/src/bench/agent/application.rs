//! The parts of an application as people declare them: a workload, who it is, what it is told, who reaches it.
//!
//! No controller has work with any of them, so that nobody but the one who is measured asks the server for anything.

use serde_json::{Value, json};

use super::objects::{NAMESPACE, Part};

/// Where a kind of part is, and how one is made with its name and its metadata.
type Kind = (&'static str, &'static str, fn(&str, Value) -> Value);

const KINDS: [Kind; 7] = [
    ("/api/v1", "serviceaccounts", service_account),
    ("/api/v1", "configmaps", config_map),
    ("/api/v1", "secrets", secret),
    ("/api/v1", "services", service),
    ("/apis/networking.k8s.io/v1", "networkpolicies", network_policy),
    ("/apis/networking.k8s.io/v1", "ingresses", ingress),
    ("/apis/batch/v1", "cronjobs", cron_job),
];

/// The rights to deploy the parts that are not among those of the documented rights, for whoever has those.
pub fn rights() -> [Part; 2] {
    let (metadata, group) = (json!({"name": "figures"}), "rbac.authorization.k8s.io");
    let may = |group: &str, resources: &[&str]| {
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata,
        "rules": [may("networking.k8s.io", &["networkpolicies", "ingresses"]), may("batch", &["cronjobs"])],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "figures"},
        "subjects": [{"kind": "ServiceAccount", "name": "sindri-agent", "namespace": "sindri-system"}],
    });
    let path = |plural: &str| format!("/apis/{group}/v1/{plural}/figures");
    [Part { path: path("clusterroles"), manifest: role }, Part { path: path("clusterrolebindings"), manifest: binding }]
}

/// So many parts, one application after another.
pub fn parts(prefix: &str, count: usize) -> Vec<Part> {
    (0..count).map(|number| part(&format!("{prefix}-{}", number / KINDS.len()), KINDS[number % KINDS.len()])).collect()
}

fn part(name: &str, (group, plural, make): Kind) -> Part {
    let labels = json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "figures", "app.kubernetes.io/version": "1.4.2",
    });
    let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
    Part { path: format!("{group}/namespaces/{NAMESPACE}/{plural}/{name}"), manifest: make(name, metadata) }
}

fn service_account(_: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": false,
    })
}

/// Without a selector: nobody looks for its endpoints.
fn service(_: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None", "ports": [
            {"name": "http", "port": 80, "targetPort": "http"}, {"name": "metrics", "port": 9090, "targetPort": "metrics"},
        ]},
    })
}

fn config_map(_: &str, metadata: Value) -> Value {
    let properties = (0..20).map(|line| format!("server.option-{line}=some value of it\n")).collect::<String>();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"LOG_LEVEL": "info", "application.properties": properties},
    })
}

fn secret(_: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque",
        "data": {"user": "YXBwbGljYXRpb24=", "password": "bm90IGEgcmVhbCBwYXNzd29yZCwgYnV0IGFzIGxvbmcgYXMgb25l"},
    })
}

fn network_policy(name: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{
                "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}],
                "ports": [{"port": 8080, "protocol": "TCP"}],
            }],
            "egress": [{"ports": [{"port": 53, "protocol": "UDP"}, {"port": 5432, "protocol": "TCP"}]}],
        },
    })
}

fn ingress(name: &str, metadata: Value) -> Value {
    let host = format!("{name}.example.com");
    let service = json!({"name": name, "port": {"name": "http"}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": {
            "ingressClassName": "public",
            "tls": [{"hosts": [host], "secretName": name}],
            "rules": [{
                "host": host,
                "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": service}}]},
            }],
        },
    })
}

/// The workload: suspended, so that nothing of it begins.
fn cron_job(name: &str, metadata: Value) -> Value {
    let variable = |variable: &str, key: &str| json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": {
            "schedule": "*/5 * * * *", "suspend": true, "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"backoffLimit": 2, "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": name}},
                "spec": {
                    "serviceAccountName": name, "restartPolicy": "Never",
                    "securityContext": {"runAsNonRoot": true, "runAsUser": 1000},
                    "containers": [{
                        "name": "main", "image": "registry.example.com/figures/main:1.4.2",
                        "args": ["--config=/etc/application/application.properties", "--once"],
                        "env": [
                            {"name": "LOG_LEVEL", "value": "info"},
                            variable("DATABASE_USER", "user"), variable("DATABASE_PASSWORD", "password"),
                        ],
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/application", "readOnly": true}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": name}}],
                },
            }}},
        },
    })
}

#[cfg(test)]
mod tests {
    use sindri_model::Bundle;

    use super::super::objects::bundle;
    use super::*;

    #[test]
    fn a_bundle_has_every_part_once_and_paths_have_the_names_of_their_objects() {
        let parts = parts("shop", 20);
        let read = Bundle::parse(&bundle(&parts)).unwrap().into_objects();
        assert_eq!(read.len(), parts.len());
        for (part, object) in parts.iter().zip(&read) {
            assert_eq!(part.manifest, object.manifest.value());
            assert!(part.path.ends_with(&format!("/{}", object.key.name)), "{}", part.path);
            assert!(part.path.contains(&object.key.group), "{}", part.path);
        }
    }
}
