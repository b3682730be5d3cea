//! Application-like objects: a workload with its service account, configuration, service and network rules.
//!
//! No controller acts on any of them, so that only the measured client sends requests to the server.

use serde_json::{Value, json};

use super::objects::{NAMESPACE, TestObject};

/// Path of the API group, resource, and a function that makes an object from its name and its metadata.
type Resource = (&'static str, &'static str, fn(&str, Value) -> Value);

const RESOURCES: [Resource; 7] = [
    ("/api/v1", "serviceaccounts", service_account),
    ("/api/v1", "configmaps", config_map),
    ("/api/v1", "secrets", secret),
    ("/api/v1", "services", service),
    ("/apis/networking.k8s.io/v1", "networkpolicies", network_policy),
    ("/apis/networking.k8s.io/v1", "ingresses", ingress),
    ("/apis/batch/v1", "cronjobs", cron_job),
];

/// Permissions for the objects that the documented permissions of the agent do not cover.
pub fn permissions() -> [TestObject; 2] {
    let (metadata, group) = (json!({"name": "figures"}), "rbac.authorization.k8s.io");
    let rule = |group: &str, resources: &[&str]| {
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata,
        "rules": [rule("networking.k8s.io", &["networkpolicies", "ingresses"]), rule("batch", &["cronjobs"])],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "figures"},
        "subjects": [{"kind": "ServiceAccount", "name": "sindri-agent", "namespace": "sindri-system"}],
    });
    let path = |plural: &str| format!("/apis/{group}/v1/{plural}/figures");
    [("clusterroles", role), ("clusterrolebindings", binding)]
        .map(|(plural, manifest)| TestObject { path: path(plural), manifest })
}

/// Returns a number of objects, one application after another.
pub fn objects(prefix: &str, count: usize) -> Vec<TestObject> {
    (0..count)
        .map(|number| object(&format!("{prefix}-{}", number / RESOURCES.len()), RESOURCES[number % RESOURCES.len()]))
        .collect()
}

fn object(name: &str, (group, plural, make): Resource) -> TestObject {
    let labels = json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "figures", "app.kubernetes.io/version": "1.4.2",
    });
    let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
    TestObject { path: format!("{group}/namespaces/{NAMESPACE}/{plural}/{name}"), manifest: make(name, metadata) }
}

fn service_account(_: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": false,
    })
}

/// Without a selector: no controller looks for its endpoints.
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

/// The workload, suspended so that no Job starts.
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
    fn a_bundle_has_every_object_once_and_paths_contain_the_names_of_their_objects() {
        let objects = objects("shop", 20);
        let read = Bundle::parse(&bundle(&objects)).unwrap().into_objects();
        assert_eq!(read.len(), objects.len());
        for (expected, object) in objects.iter().zip(&read) {
            assert_eq!(expected.manifest, object.manifest);
            assert!(expected.path.ends_with(&format!("/{}", object.key.name)), "{}", expected.path);
            assert!(expected.path.contains(&object.key.group), "{}", expected.path);
        }
    }
}
