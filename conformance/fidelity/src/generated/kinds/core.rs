//! Kinds of the core group with data.

use serde_json::{Value, json};

use super::kind::{ResourceKind, nothing};
use crate::generated::random::RandomSource;

pub(super) const KINDS: &[ResourceKind] = &[
    ResourceKind {
        name: "ConfigMap",
        api_version: "v1",
        plural: "configmaps",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: config_map,
        status: nothing,
        weight: 12,
    },
    ResourceKind {
        name: "Secret",
        api_version: "v1",
        plural: "secrets",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: secret,
        status: nothing,
        weight: 8,
    },
    ResourceKind {
        name: "ServiceAccount",
        api_version: "v1",
        plural: "serviceaccounts",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: account,
        status: nothing,
        weight: 5,
    },
    ResourceKind {
        name: "PersistentVolumeClaim",
        api_version: "v1",
        plural: "persistentvolumeclaims",
        namespaced: true,
        custom: false,
        subresources: &["status"],
        content: claim,
        status: claim_status,
        weight: 5,
    },
    ResourceKind {
        name: "Namespace",
        api_version: "v1",
        plural: "namespaces",
        namespaced: false,
        custom: false,
        subresources: &["status"],
        content: |_| json!({}),
        status: |random| json!({"phase": random.one(&["Active", "Terminating"])}),
        weight: 4,
    },
];

/// Returns keys a, b and c with short texts.
pub(super) fn texts(random: &mut RandomSource, of_hundred: u32) -> Value {
    let keys = random.some(&["a", "b", "c"], of_hundred);
    keys.into_iter()
        .map(|key| (key.to_owned(), json!(random.one(&["1", "2", ""]))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn encoded(random: &mut RandomSource) -> Value {
    let keys = random.some(&["x", "y"], 60);
    let values = ["AA==", "Yg==", "Yw=="];
    keys.into_iter().map(|key| (key.to_owned(), json!(random.one(&values)))).collect::<serde_json::Map<_, _>>().into()
}

fn config_map(random: &mut RandomSource) -> Value {
    let mut map = json!({});
    random.maybe_set(85, &mut map, "data", |random| texts(random, 60));
    random.maybe_set(25, &mut map, "binaryData", encoded);
    random.maybe_set(6, &mut map, "immutable", |random| json!(random.percent(50)));
    map
}

fn secret(random: &mut RandomSource) -> Value {
    let mut secret = json!({});
    random.maybe_set(70, &mut secret, "data", encoded);
    random.maybe_set(40, &mut secret, "stringData", |random| texts(random, 50));
    random.maybe_set(20, &mut secret, "type", |random| json!(random.one(&["Opaque", "example.com/own"])));
    random.maybe_set(5, &mut secret, "immutable", |random| json!(random.percent(50)));
    secret
}

fn account(random: &mut RandomSource) -> Value {
    let mut account = json!({});
    let named = |random: &mut RandomSource| {
        random.some(&["a", "b", "c"], 50).into_iter().map(|name| json!({ "name": name })).collect::<Vec<_>>().into()
    };
    random.maybe_set(60, &mut account, "imagePullSecrets", named);
    random.maybe_set(40, &mut account, "secrets", named);
    random.maybe_set(40, &mut account, "automountServiceAccountToken", |random| json!(random.percent(50)));
    account
}

fn claim(random: &mut RandomSource) -> Value {
    let modes: &[&str] = random.weighted(&[(2, ["ReadWriteOnce"].as_slice()), (1, &["ReadOnlyMany", "ReadWriteMany"])]);
    let amount = random.one(&["1Gi", "1Gi", "2048Mi"]);
    let mut spec = json!({"accessModes": modes, "resources": {"requests": {"storage": amount}}});
    random.maybe_set(25, &mut spec, "storageClassName", |random| json!(random.one(&["", "fast"])));
    random.maybe_set(15, &mut spec, "volumeMode", |random| json!(random.one(&["Filesystem", "Block"])));
    random.maybe_set(15, &mut spec, "selector", |_| json!({"matchLabels": {"disk": "a"}}));
    json!({ "spec": spec })
}

fn claim_status(random: &mut RandomSource) -> Value {
    let phase = random.one(&["Pending", "Bound", "Lost"]);
    let mut status = json!({ "phase": phase });
    random.maybe_set(40, &mut status, "accessModes", |_| json!(["ReadWriteOnce"]));
    random.maybe_set(40, &mut status, "capacity", |_| json!({"storage": "1Gi"}));
    status
}
