//! The objects of which a database consists.

use serde_json::{Value, json};

use super::crd::DATABASE;
use crate::client::ResourceKind;
use crate::object::{name, text, uid};

/// Label with the name of the controller that created a child.
pub const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGER_LABEL`].
pub const MANAGER: &str = "database-controller";
/// Label with the name of the database that a child belongs to.
pub const NAME_LABEL: &str = "guests.example.com/database";
/// HostNetwork of the database.
const PORT: u16 = 5432;

/// A child of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// Holds the password, which is generated once.
    Secret,
    /// Makes the database reachable.
    Service,
    /// Runs the database.
    Deployment,
}

/// All children, in the order of their creation.
pub const CHILDREN: [Child; 3] = [Child::Secret, Child::Service, Child::Deployment];

impl Child {
    /// Returns its kind.
    pub fn kind(self) -> ResourceKind {
        match self {
            Child::Secret => ResourceKind { group: "", version: "v1", kind: "Secret", plural: "secrets" },
            Child::Service => ResourceKind { group: "", version: "v1", kind: "Service", plural: "services" },
            Child::Deployment => {
                ResourceKind { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" }
            }
        }
    }

    /// Returns its name.
    pub fn name(self, parent: &Value) -> String {
        match self {
            Child::Secret => format!("{}-credentials", name(parent)),
            Child::Service | Child::Deployment => name(parent).to_owned(),
        }
    }
}

/// Returns the desired state of a child. A Secret has no password here; it is generated at the creation.
pub fn desired_child(child: Child, parent: &Value) -> Value {
    let kind = child.kind();
    let parent_name = name(parent);
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": child.name(parent),
            "namespace": text(parent, "/metadata/namespace"),
            "labels": {MANAGER_LABEL: MANAGER, NAME_LABEL: parent_name},
            "ownerReferences": [owner_reference(parent)],
        },
    });
    match child {
        Child::Secret => {}
        Child::Service => {
            object["spec"] = json!({"selector": {NAME_LABEL: parent_name}, "ports": [{"name": "sql", "port": PORT}]});
        }
        Child::Deployment => object["spec"] = deployment_spec(parent),
    }
    object
}

fn deployment_spec(parent: &Value) -> Value {
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

fn owner_reference(parent: &Value) -> Value {
    json!({
        "apiVersion": DATABASE.api_version(),
        "kind": DATABASE.kind,
        "name": name(parent),
        "uid": uid(parent),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns true if an owner reference of the child has the UID of the parent.
pub fn is_owned_by(child: &Value, parent: &Value) -> bool {
    owner_references(child).any(|owner| text(owner, "/uid") == uid(parent))
}

/// Returns the owner references to databases.
pub(super) fn owner_references(child: &Value) -> impl Iterator<Item = &Value> {
    let references = child.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    references.into_iter().flatten().filter(|owner| text(owner, "/kind") == DATABASE.kind)
}
