//! Kinds about how things are reached.

use serde_json::{Value, json};

use super::{Kind, nothing};
use crate::generated::dice::Dice;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "Service",
        api_version: "v1",
        plural: "services",
        namespaced: true,
        custom: false,
        parts: &["status"],
        content: service,
        status: balancer,
        weight: 8,
    },
    Kind {
        name: "Ingress",
        api_version: "networking.k8s.io/v1",
        plural: "ingresses",
        namespaced: true,
        custom: false,
        parts: &["status"],
        content: ingress,
        status: balancer,
        weight: 4,
    },
    Kind {
        name: "NetworkPolicy",
        api_version: "networking.k8s.io/v1",
        plural: "networkpolicies",
        namespaced: true,
        custom: false,
        parts: &[],
        content: policy,
        status: nothing,
        weight: 4,
    },
];

/// Ports that are told apart by number and protocol.
fn ports(dice: &mut Dice) -> Value {
    let mut ports: Vec<Value> = Vec::new();
    for (port, protocol, name) in dice.some(&[(80, "TCP", "web"), (53, "TCP", "dns"), (53, "UDP", "dns-udp")], 55) {
        let mut written = json!({"port": port, "name": name});
        if protocol != "TCP" || dice.percent(50) {
            written["protocol"] = json!(protocol);
        }
        dice.maybe(40, &mut written, "targetPort", |dice| dice.one(&[json!(8080), json!("http")]).clone());
        ports.push(written);
    }
    if ports.is_empty() {
        ports.push(json!({"port": 80}));
    }
    ports.into()
}

fn service(dice: &mut Dice) -> Value {
    let mut spec = json!({ "ports": ports(dice) });
    dice.maybe(60, &mut spec, "selector", |dice| json!({"app": dice.one(&["a", "b"])}));
    dice.maybe(25, &mut spec, "type", |dice| json!(dice.one(&["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer"])));
    dice.maybe(8, &mut spec, "clusterIP", |_| json!("None"));
    dice.maybe(20, &mut spec, "sessionAffinity", |dice| json!(dice.one(&["None", "ClientIP"])));
    dice.maybe(10, &mut spec, "externalIPs", |dice| dice.some(&["192.0.2.1", "192.0.2.2"], 60).into());
    dice.maybe(8, &mut spec, "publishNotReadyAddresses", |dice| json!(dice.percent(60)));
    // With any other policy a change to a headless service makes a real server panic.
    dice.maybe(8, &mut spec, "ipFamilyPolicy", |_| json!("SingleStack"));
    json!({ "spec": spec })
}

fn balancer(dice: &mut Dice) -> Value {
    let addresses = dice.some(&["192.0.2.7", "192.0.2.8"], 60);
    json!({"loadBalancer": {"ingress": addresses.into_iter().map(|ip| json!({ "ip": ip })).collect::<Vec<_>>()}})
}

fn backend(dice: &mut Dice) -> Value {
    let port = dice.one(&[json!({"number": 80}), json!({"name": "web"})]).clone();
    json!({"service": {"name": dice.one(&["a", "b"]), "port": port}})
}

fn ingress(dice: &mut Dice) -> Value {
    let mut spec = json!({});
    dice.maybe(60, &mut spec, "defaultBackend", backend);
    dice.maybe(60, &mut spec, "rules", |dice| {
        let hosts = dice.some(&["a.example.com", "b.example.com"], 60);
        let rule = |host: &str, dice: &mut Dice| {
            let kind = dice.one(&["Prefix", "Exact", "ImplementationSpecific"]);
            json!({"host": host, "http": {"paths": [{"path": "/", "pathType": kind, "backend": backend(dice)}]}})
        };
        hosts.into_iter().map(|host| rule(host, dice)).collect::<Vec<_>>().into()
    });
    dice.maybe(25, &mut spec, "tls", |_| json!([{"hosts": ["a.example.com"], "secretName": "a"}]));
    dice.maybe(20, &mut spec, "ingressClassName", |dice| json!(dice.one(&["one", "two"])));
    if spec.as_object().is_some_and(|spec| !spec.contains_key("defaultBackend") && !spec.contains_key("rules")) {
        spec["defaultBackend"] = backend(dice);
    }
    json!({ "spec": spec })
}

fn policy(dice: &mut Dice) -> Value {
    let mut spec = json!({"podSelector": dice.one(&[json!({}), json!({"matchLabels": {"app": "a"}})])});
    let peer = |dice: &mut Dice| {
        let label = json!({"matchLabels": {"app": dice.one(&["a", "b"])}});
        dice.one(&[json!({"podSelector": label}), json!({"ipBlock": {"cidr": "192.0.2.0/24"}})]).clone()
    };
    dice.maybe(50, &mut spec, "ingress", |dice| json!([{"from": [peer(dice)], "ports": [{"port": 80}]}]));
    dice.maybe(30, &mut spec, "egress", |dice| json!([{"to": [peer(dice)]}]));
    dice.maybe(30, &mut spec, "policyTypes", |dice| dice.some(&["Ingress", "Egress"], 70).into());
    json!({ "spec": spec })
}
