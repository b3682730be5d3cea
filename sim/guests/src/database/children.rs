//! The objects of which a database consists.

use serde_json::{Value, json};

use super::crd::DATABASE;
use crate::client::ResourceKind;
use crate::object::{name, text};
use crate::owners::{has_owner, owner_reference};

/// Label with the name of the controller that created a child.
pub const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGER_LABEL`].
pub const MANAGER: &str = "database-controller";
/// Label with the name of the database that a child belongs to.
pub const NAME_LABEL: &str = "guests.example.com/database";
/// Port of the database.
const PORT: u16 = 5432;

/// A child of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// Holds the password, which is generated once.
    Secret,
    /// Gives each pod a name, and makes the database reachable.
    Service,
    /// Runs the database, with a volume for each pod.
    StatefulSet,
}

/// All children, in the order of their creation.
pub const CHILDREN: [Child; 3] = [Child::Secret, Child::Service, Child::StatefulSet];

impl Child {
    /// Returns its kind.
    pub fn kind(self) -> ResourceKind {
        match self {
            Child::Secret => ResourceKind { group: "", version: "v1", kind: "Secret", plural: "secrets" },
            Child::Service => ResourceKind { group: "", version: "v1", kind: "Service", plural: "services" },
            Child::StatefulSet => {
                ResourceKind { group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets" }
            }
        }
    }

    /// Returns its name.
    pub fn name(self, parent: &Value) -> String {
        match self {
            Child::Secret => format!("{}-credentials", name(parent)),
            Child::Service | Child::StatefulSet => name(parent).to_owned(),
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
            "ownerReferences": [owner_reference(DATABASE, parent)],
        },
    });
    match child {
        Child::Secret => {}
        Child::Service => {
            let ports = json!([{"name": "sql", "port": PORT}]);
            object["spec"] = json!({"clusterIP": "None", "selector": {NAME_LABEL: parent_name}, "ports": ports});
        }
        Child::StatefulSet => object["spec"] = stateful_set_spec(parent),
    }
    object
}

fn stateful_set_spec(parent: &Value) -> Value {
    let labels = json!({NAME_LABEL: name(parent)});
    let password = json!({"secretKeyRef": {"name": Child::Secret.name(parent), "key": "password"}});
    let container = json!({
        "name": "database",
        "image": parent["spec"]["image"],
        "env": [{"name": "PASSWORD", "valueFrom": password}],
        "ports": [{"containerPort": PORT}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    });
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": parent["spec"]["storage"]}},
        },
    });
    json!({
        "serviceName": Child::Service.name(parent),
        "replicas": parent["spec"]["replicas"],
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [claim],
    })
}

/// Returns true if an owner reference of the child has the UID of the parent.
pub fn is_owned_by(child: &Value, parent: &Value) -> bool {
    has_owner(child, DATABASE, parent)
}
