//! The parts of an application as people declare them: a workload, who it is, what it may do, what it is told, who reaches it.
//!
//! No controller has work with any of them, so that nobody but the one who is measured asks the server for anything.

use serde_json::{Value, json};

use super::objects::{NAMESPACE, Part};

/// Where a kind of part is, and how one is made with its name and its metadata.
type Kind = (&'static str, &'static str, fn(&str, Value) -> Value);

const KINDS: [Kind; 8] = [
    ("/api/v1", "serviceaccounts", service_account),
    ("/apis/rbac.authorization.k8s.io/v1", "roles", role),
    ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", role_binding),
    ("/api/v1", "configmaps", config_map),
    ("/api/v1", "secrets", secret),
    ("/apis/networking.k8s.io/v1", "networkpolicies", network_policy),
    ("/apis/networking.k8s.io/v1", "ingresses", ingress),
    ("/apis/batch/v1", "cronjobs", cron_job),
];

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

fn role(name: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get", "watch"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
        ],
    })
}

fn role_binding(name: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
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
    let variable = |name: &str, key: &str, of: &str| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": of, "key": key}}});
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
                            variable("DATABASE_USER", "user", name), variable("DATABASE_PASSWORD", "password", name),
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
            assert_eq!(part.manifest, object.manifest);
            assert!(part.path.ends_with(&format!("/{}", object.key.name)), "{}", part.path);
            assert!(part.path.contains(&object.key.group), "{}", part.path);
        }
    }
}
