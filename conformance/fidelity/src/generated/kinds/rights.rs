//! Kinds about who may do what.

use serde_json::{Value, json};

use super::{Kind, nothing};
use crate::generated::dice::Dice;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "Role",
        api_version: "rbac.authorization.k8s.io/v1",
        plural: "roles",
        namespaced: true,
        custom: false,
        parts: &[],
        content: role,
        status: nothing,
        weight: 3,
    },
    Kind {
        name: "RoleBinding",
        api_version: "rbac.authorization.k8s.io/v1",
        plural: "rolebindings",
        namespaced: true,
        custom: false,
        parts: &[],
        content: binding,
        status: nothing,
        weight: 3,
    },
];

fn role(dice: &mut Dice) -> Value {
    let rule = |dice: &mut Dice| {
        let mut rule =
            json!({"apiGroups": [dice.one(&["", "apps"])], "verbs": dice.some(&["get", "list", "watch"], 70)});
        rule["resources"] = dice.one(&[json!(["configmaps"]), json!(["secrets", "configmaps"])]).clone();
        dice.maybe(20, &mut rule, "resourceNames", |_| json!(["a"]));
        rule
    };
    let count = dice.between(0, 2);
    json!({ "rules": (0..count).map(|_| rule(dice)).collect::<Vec<_>>() })
}

fn binding(dice: &mut Dice) -> Value {
    let subjects = [
        json!({"kind": "ServiceAccount", "name": "a", "namespace": "${namespace}"}),
        json!({"kind": "User", "name": "jane"}),
        json!({"kind": "Group", "name": "all", "apiGroup": "rbac.authorization.k8s.io"}),
    ];
    let mut reference = json!({"kind": "Role", "name": dice.weighed(&[(9, "a"), (1, "b")])});
    dice.maybe(70, &mut reference, "apiGroup", |_| json!("rbac.authorization.k8s.io"));
    let mut binding = json!({ "roleRef": reference });
    dice.maybe(85, &mut binding, "subjects", |dice| dice.some(&subjects, 50).into());
    binding
}
