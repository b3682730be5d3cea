//! Network kinds.

use serde_json::{Value, json};

use super::kind::{ResourceKind, nothing};
use crate::generated::random::RandomSource;

pub(super) const KINDS: &[ResourceKind] = &[
    ResourceKind {
        name: "Service",
        api_version: "v1",
        plural: "services",
        namespaced: true,
        custom: false,
        subresources: &["status"],
        content: service,
        status: balancer,
        weight: 8,
    },
    ResourceKind {
        name: "Ingress",
        api_version: "networking.k8s.io/v1",
        plural: "ingresses",
        namespaced: true,
        custom: false,
        subresources: &["status"],
        content: ingress,
        status: balancer,
        weight: 4,
    },
    ResourceKind {
        name: "NetworkPolicy",
        api_version: "networking.k8s.io/v1",
        plural: "networkpolicies",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: policy,
        status: nothing,
        weight: 4,
    },
];

/// Ports that are distinguished by number and protocol.
fn ports(random: &mut RandomSource) -> Value {
    let mut ports: Vec<Value> = Vec::new();
    for (port, protocol, name) in random.some(&[(80, "TCP", "web"), (53, "TCP", "dns"), (53, "UDP", "dns-udp")], 55) {
        let mut written = json!({"port": port, "name": name});
        if protocol != "TCP" || random.percent(50) {
            written["protocol"] = json!(protocol);
        }
        random.maybe_set(40, &mut written, "targetPort", |random| random.one(&[json!(8080), json!("http")]).clone());
        ports.push(written);
    }
    if ports.is_empty() {
        ports.push(json!({"port": 80}));
    }
    ports.into()
}

fn service(random: &mut RandomSource) -> Value {
    let mut spec = json!({ "ports": ports(random) });
    random.maybe_set(60, &mut spec, "selector", |random| json!({"app": random.one(&["a", "b"])}));
    random.maybe_set(25, &mut spec, "type", |random| {
        json!(random.one(&["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer"]))
    });
    random.maybe_set(8, &mut spec, "clusterIP", |_| json!("None"));
    random.maybe_set(20, &mut spec, "sessionAffinity", |random| json!(random.one(&["None", "ClientIP"])));
    random.maybe_set(10, &mut spec, "externalIPs", |random| random.some(&["192.0.2.1", "192.0.2.2"], 60).into());
    random.maybe_set(8, &mut spec, "publishNotReadyAddresses", |random| json!(random.percent(60)));
    // With any other policy a change to a headless service makes a real server panic.
    random.maybe_set(8, &mut spec, "ipFamilyPolicy", |_| json!("SingleStack"));
    json!({ "spec": spec })
}

fn balancer(random: &mut RandomSource) -> Value {
    let addresses = random.some(&["192.0.2.7", "192.0.2.8"], 60);
    json!({"loadBalancer": {"ingress": addresses.into_iter().map(|ip| json!({ "ip": ip })).collect::<Vec<_>>()}})
}

fn backend(random: &mut RandomSource) -> Value {
    let port = random.one(&[json!({"number": 80}), json!({"name": "web"})]).clone();
    json!({"service": {"name": random.one(&["a", "b"]), "port": port}})
}

fn ingress(random: &mut RandomSource) -> Value {
    let mut spec = json!({});
    random.maybe_set(60, &mut spec, "defaultBackend", backend);
    random.maybe_set(60, &mut spec, "rules", |random| {
        let hosts = random.some(&["a.example.com", "b.example.com"], 60);
        let rule = |host: &str, random: &mut RandomSource| {
            let kind = random.one(&["Prefix", "Exact", "ImplementationSpecific"]);
            json!({"host": host, "http": {"paths": [{"path": "/", "pathType": kind, "backend": backend(random)}]}})
        };
        hosts.into_iter().map(|host| rule(host, random)).collect::<Vec<_>>().into()
    });
    random.maybe_set(25, &mut spec, "tls", |_| json!([{"hosts": ["a.example.com"], "secretName": "a"}]));
    random.maybe_set(20, &mut spec, "ingressClassName", |random| json!(random.one(&["one", "two"])));
    if spec.as_object().is_some_and(|spec| !spec.contains_key("defaultBackend") && !spec.contains_key("rules")) {
        spec["defaultBackend"] = backend(random);
    }
    json!({ "spec": spec })
}

fn policy(random: &mut RandomSource) -> Value {
    let mut spec = json!({"podSelector": random.one(&[json!({}), json!({"matchLabels": {"app": "a"}})])});
    let peer = |random: &mut RandomSource| {
        let label = json!({"matchLabels": {"app": random.one(&["a", "b"])}});
        random.one(&[json!({"podSelector": label}), json!({"ipBlock": {"cidr": "192.0.2.0/24"}})]).clone()
    };
    random.maybe_set(50, &mut spec, "ingress", |random| json!([{"from": [peer(random)], "ports": [{"port": 80}]}]));
    random.maybe_set(30, &mut spec, "egress", |random| json!([{"to": [peer(random)]}]));
    random.maybe_set(30, &mut spec, "policyTypes", |random| random.some(&["Ingress", "Egress"], 70).into());
    json!({ "spec": spec })
}
