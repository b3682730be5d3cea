//! Kinds of the core group that hold data.

use serde_json::{Value, json};

use super::{Kind, nothing};
use crate::generated::dice::Dice;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "ConfigMap",
        api_version: "v1",
        plural: "configmaps",
        namespaced: true,
        custom: false,
        parts: &[],
        content: config_map,
        status: nothing,
        weight: 12,
    },
    Kind {
        name: "Secret",
        api_version: "v1",
        plural: "secrets",
        namespaced: true,
        custom: false,
        parts: &[],
        content: secret,
        status: nothing,
        weight: 8,
    },
    Kind {
        name: "ServiceAccount",
        api_version: "v1",
        plural: "serviceaccounts",
        namespaced: true,
        custom: false,
        parts: &[],
        content: account,
        status: nothing,
        weight: 5,
    },
    Kind {
        name: "PersistentVolumeClaim",
        api_version: "v1",
        plural: "persistentvolumeclaims",
        namespaced: true,
        custom: false,
        parts: &["status"],
        content: claim,
        status: claim_status,
        weight: 5,
    },
    Kind {
        name: "Namespace",
        api_version: "v1",
        plural: "namespaces",
        namespaced: false,
        custom: false,
        parts: &["status"],
        content: |_| json!({}),
        status: |dice| json!({"phase": dice.one(&["Active", "Terminating"])}),
        weight: 4,
    },
];

/// Keys a, b and c with small texts.
pub(super) fn texts(dice: &mut Dice, of_hundred: u32) -> Value {
    let keys = dice.some(&["a", "b", "c"], of_hundred);
    keys.into_iter()
        .map(|key| (key.to_owned(), json!(dice.one(&["1", "2", ""]))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn encoded(dice: &mut Dice) -> Value {
    let keys = dice.some(&["x", "y"], 60);
    let values = ["AA==", "Yg==", "Yw=="];
    keys.into_iter().map(|key| (key.to_owned(), json!(dice.one(&values)))).collect::<serde_json::Map<_, _>>().into()
}

fn config_map(dice: &mut Dice) -> Value {
    let mut map = json!({});
    dice.maybe(85, &mut map, "data", |dice| texts(dice, 60));
    dice.maybe(25, &mut map, "binaryData", encoded);
    dice.maybe(6, &mut map, "immutable", |dice| json!(dice.percent(50)));
    map
}

fn secret(dice: &mut Dice) -> Value {
    let mut secret = json!({});
    dice.maybe(70, &mut secret, "data", encoded);
    dice.maybe(40, &mut secret, "stringData", |dice| texts(dice, 50));
    dice.maybe(20, &mut secret, "type", |dice| json!(dice.one(&["Opaque", "example.com/own"])));
    dice.maybe(5, &mut secret, "immutable", |dice| json!(dice.percent(50)));
    secret
}

fn account(dice: &mut Dice) -> Value {
    let mut account = json!({});
    let named = |dice: &mut Dice| {
        dice.some(&["a", "b", "c"], 50).into_iter().map(|name| json!({ "name": name })).collect::<Vec<_>>().into()
    };
    dice.maybe(60, &mut account, "imagePullSecrets", named);
    dice.maybe(40, &mut account, "secrets", named);
    dice.maybe(40, &mut account, "automountServiceAccountToken", |dice| json!(dice.percent(50)));
    account
}

fn claim(dice: &mut Dice) -> Value {
    let modes: &[&str] = dice.weighed(&[(2, ["ReadWriteOnce"].as_slice()), (1, &["ReadOnlyMany", "ReadWriteMany"])]);
    let amount = dice.one(&["1Gi", "1Gi", "2048Mi"]);
    let mut spec = json!({"accessModes": modes, "resources": {"requests": {"storage": amount}}});
    dice.maybe(25, &mut spec, "storageClassName", |dice| json!(dice.one(&["", "fast"])));
    dice.maybe(15, &mut spec, "volumeMode", |dice| json!(dice.one(&["Filesystem", "Block"])));
    dice.maybe(15, &mut spec, "selector", |_| json!({"matchLabels": {"disk": "a"}}));
    json!({ "spec": spec })
}

fn claim_status(dice: &mut Dice) -> Value {
    let phase = dice.one(&["Pending", "Bound", "Lost"]);
    let mut status = json!({ "phase": phase });
    dice.maybe(40, &mut status, "accessModes", |_| json!(["ReadWriteOnce"]));
    dice.maybe(40, &mut status, "capacity", |_| json!({"storage": "1Gi"}));
    status
}
