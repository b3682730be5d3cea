//! What a database consists of.

use serde_json::{Value, json};

use super::DATABASE;
use crate::client::{Kind, name, text, uid};

/// The label that says who made a child.
pub const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// What it says.
pub const MANAGER: &str = "database-controller";
/// The label that says of which database a child is.
pub const NAME_LABEL: &str = "guests.example.com/database";
/// Where the database listens.
const PORT: u16 = 5432;

/// One of the children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// The password, chosen once.
    Secret,
    /// How the database is reached.
    Service,
    /// What runs it.
    Deployment,
}

/// All of them, in the order in which they are made.
pub const CHILDREN: [Child; 3] = [Child::Secret, Child::Service, Child::Deployment];

impl Child {
    /// Its kind.
    pub fn kind(self) -> Kind {
        match self {
            Child::Secret => Kind { group: "", version: "v1", kind: "Secret", plural: "secrets" },
            Child::Service => Kind { group: "", version: "v1", kind: "Service", plural: "services" },
            Child::Deployment => Kind { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" },
        }
    }

    /// How it is called.
    pub fn name(self, parent: &Value) -> String {
        match self {
            Child::Secret => format!("{}-credentials", name(parent)),
            Child::Service | Child::Deployment => name(parent).to_owned(),
        }
    }
}

/// A child as the declaration wants it. A Secret is without its password, which is chosen when it is made.
pub fn desired(child: Child, parent: &Value) -> Value {
    let kind = child.kind();
    let of_parent = name(parent);
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": child.name(parent),
            "namespace": text(parent, "/metadata/namespace"),
            "labels": {MANAGER_LABEL: MANAGER, NAME_LABEL: of_parent},
            "ownerReferences": [owner(parent)],
        },
    });
    match child {
        Child::Secret => {}
        Child::Service => {
            object["spec"] = json!({"selector": {NAME_LABEL: of_parent}, "ports": [{"name": "sql", "port": PORT}]});
        }
        Child::Deployment => object["spec"] = deployment(parent),
    }
    object
}

fn deployment(parent: &Value) -> Value {
    let labels = json!({NAME_LABEL: name(parent)});
    let password = json!({"secretKeyRef": {"name": Child::Secret.name(parent), "key": "password"}});
    let container = json!({
        "name": "database",
        "image": parent["spec"]["image"],
        "env": [{"name": "PASSWORD", "valueFrom": password}],
        "ports": [{"containerPort": PORT}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    });
    let volume = json!({"name": "data", "emptyDir": {"sizeLimit": parent["spec"]["storage"]}});
    json!({
        "replicas": parent["spec"]["replicas"],
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": [volume]}},
    })
}

fn owner(parent: &Value) -> Value {
    json!({
        "apiVersion": DATABASE.api_version(),
        "kind": DATABASE.kind,
        "name": name(parent),
        "uid": uid(parent),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Whether a child names this very parent as its owner.
pub fn is_owned_by(child: &Value, parent: &Value) -> bool {
    owners(child).any(|owner| text(owner, "/uid") == uid(parent))
}

/// The databases that an object names as its owners.
pub(super) fn owners(child: &Value) -> impl Iterator<Item = &Value> {
    let references = child.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().filter(|owner| text(owner, "/kind") == DATABASE.kind)
}
