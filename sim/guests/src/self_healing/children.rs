//! The objects of which an agent consists.

use serde_json::{Value, json};
use sindri_model::Checksum;

use super::crd::{AGENT, SECRET};
use crate::client::ResourceKind;
use crate::object::{name, text};
use crate::owners::owner_reference;

/// Label with the name of the controller that created a child.
pub const MANAGER_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGER_LABEL`].
pub const MANAGER: &str = "self-healing-controller";
/// Label with the name of the agent that a child belongs to.
pub const NAME_LABEL: &str = "guests.example.com/agent";
/// Annotation of pods with a checksum of their configuration: pods are replaced when it changes.
pub const CONFIG_ANNOTATION: &str = "guests.example.com/config";
/// Port of the container.
const PORT: u16 = 8080;

/// A child of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// Identity of the pods.
    ServiceAccount,
    /// Holds a copy of the key.
    Secret,
    /// Makes the agent reachable, if it declares a port.
    Service,
    /// Runs the agent.
    Deployment,
}

/// All children, in the order of their creation.
pub const CHILDREN: [Child; 4] = [Child::ServiceAccount, Child::Secret, Child::Service, Child::Deployment];

impl Child {
    /// Returns its kind.
    pub fn kind(self) -> ResourceKind {
        match self {
            Child::ServiceAccount => {
                ResourceKind { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" }
            }
            Child::Secret => SECRET,
            Child::Service => ResourceKind { group: "", version: "v1", kind: "Service", plural: "services" },
            Child::Deployment => {
                ResourceKind { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" }
            }
        }
    }

    /// Returns its name.
    pub fn name(self, agent: &Value) -> String {
        match self {
            Child::Secret => format!("{}-config", name(agent)),
            Child::ServiceAccount | Child::Service | Child::Deployment => name(agent).to_owned(),
        }
    }
}

/// Configuration of the pods, read from the objects to which an agent refers. It has no `Debug`, because it has a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the model.
    pub model: String,
    /// Key in Base64, as a Secret has it.
    pub key: String,
}

impl Config {
    fn checksum(&self) -> Checksum {
        Checksum::compute(&format!("{}\n{}", self.model, self.key))
    }
}

/// Returns the desired state of a child; None if the agent does not declare it.
pub fn desired_child(child: Child, agent: &Value, config: &Config) -> Option<Value> {
    let kind = child.kind();
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": child.name(agent),
            "namespace": text(agent, "/metadata/namespace"),
            "labels": {MANAGER_LABEL: MANAGER, NAME_LABEL: name(agent)},
            "ownerReferences": [owner_reference(AGENT, agent)],
        },
    });
    match child {
        Child::ServiceAccount => object["automountServiceAccountToken"] = json!(false),
        Child::Secret => object["data"] = json!({"key": config.key}),
        Child::Service => {
            let port = agent.pointer("/spec/port")?;
            let ports = json!([{"name": "http", "port": port, "targetPort": PORT}]);
            object["spec"] = json!({"selector": {NAME_LABEL: name(agent)}, "ports": ports});
        }
        Child::Deployment => object["spec"] = deployment_spec(agent, config),
    }
    Some(object)
}

fn deployment_spec(agent: &Value, config: &Config) -> Value {
    let labels = json!({NAME_LABEL: name(agent)});
    let key = json!({"secretKeyRef": {"name": Child::Secret.name(agent), "key": "key"}});
    let container = json!({
        "name": "agent",
        "image": agent["spec"]["image"],
        "env": [{"name": "MODEL", "value": config.model}, {"name": "KEY", "valueFrom": key}],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"tcpSocket": {"port": PORT}},
    });
    let annotations = json!({CONFIG_ANNOTATION: config.checksum().as_str()});
    json!({
        "replicas": agent["spec"]["replicas"],
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"serviceAccountName": Child::ServiceAccount.name(agent), "containers": [container]},
        },
    })
}
