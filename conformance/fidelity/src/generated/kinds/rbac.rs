//! RBAC kinds.

use serde_json::{Value, json};

use super::kind::{ResourceKind, nothing};
use crate::generated::random::RandomSource;

pub(super) const KINDS: &[ResourceKind] = &[
    ResourceKind {
        name: "Role",
        api_version: "rbac.authorization.k8s.io/v1",
        plural: "roles",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: role,
        status: nothing,
        weight: 3,
    },
    ResourceKind {
        name: "RoleBinding",
        api_version: "rbac.authorization.k8s.io/v1",
        plural: "rolebindings",
        namespaced: true,
        custom: false,
        subresources: &[],
        content: binding,
        status: nothing,
        weight: 3,
    },
];

fn role(random: &mut RandomSource) -> Value {
    let rule = |random: &mut RandomSource| {
        let mut rule =
            json!({"apiGroups": [random.one(&["", "apps"])], "verbs": random.some(&["get", "list", "watch"], 70)});
        rule["resources"] = random.one(&[json!(["configmaps"]), json!(["secrets", "configmaps"])]).clone();
        random.maybe_set(20, &mut rule, "resourceNames", |_| json!(["a"]));
        rule
    };
    let count = random.between(0, 2);
    json!({ "rules": (0..count).map(|_| rule(random)).collect::<Vec<_>>() })
}

fn binding(random: &mut RandomSource) -> Value {
    let subjects = [
        json!({"kind": "ServiceAccount", "name": "a", "namespace": "${namespace}"}),
        json!({"kind": "User", "name": "jane"}),
        json!({"kind": "Group", "name": "all", "apiGroup": "rbac.authorization.k8s.io"}),
    ];
    let mut reference = json!({"kind": "Role", "name": random.weighted(&[(9, "a"), (1, "b")])});
    random.maybe_set(70, &mut reference, "apiGroup", |_| json!("rbac.authorization.k8s.io"));
    let mut binding = json!({ "roleRef": reference });
    random.maybe_set(85, &mut binding, "subjects", |random| random.some(&subjects, 50).into());
    binding
}
