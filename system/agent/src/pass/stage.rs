//! Order in which kinds are written and deleted.

use std::cmp::Reverse;

use sindri_model::ObjectKey;

use crate::cluster::is_built_in_group;

/// Stage in which an object is written: objects that others refer to come before those. Within a stage the order of the
/// bundle applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Namespaces.
    Namespaces,
    /// CustomResourceDefinitions; the next stage waits until they are served.
    Crds,
    /// Limits and classes of later objects.
    Policies,
    /// Service accounts and roles.
    Roles,
    /// Role bindings.
    RoleBindings,
    /// Configuration that workloads read when they start.
    Configuration,
    /// Volumes.
    Storage,
    /// Services: a workload gets the addresses of services that exist before it starts.
    Services,
    /// Workloads.
    Workloads,
    /// Every other kind, including custom resources.
    Others,
    /// Admission webhooks and API services, last so that they do not block the other objects of their own stack.
    Admission,
}

impl Stage {
    /// Returns the stage of an object.
    pub fn from_key(key: &ObjectKey) -> Self {
        match (key.group.as_str(), key.kind.as_str()) {
            ("", "Namespace") => Self::Namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Crds,
            ("", "ResourceQuota" | "LimitRange") => Self::Policies,
            ("scheduling.k8s.io" | "storage.k8s.io" | "node.k8s.io" | "policy", _) => Self::Policies,
            ("networking.k8s.io", "NetworkPolicy" | "IngressClass") => Self::Policies,
            ("", "ServiceAccount") | ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => Self::Roles,
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Self::RoleBindings,
            ("", "Secret" | "ConfigMap") => Self::Configuration,
            ("", "PersistentVolume" | "PersistentVolumeClaim") => Self::Storage,
            ("", "Service" | "Endpoints") | ("discovery.k8s.io", "EndpointSlice") => Self::Services,
            ("", "Pod" | "ReplicationController") | ("apps" | "batch", _) => Self::Workloads,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Admission,
            _ => Self::Others,
        }
    }

    /// Returns true if it is written before the bundle is validated, because other objects cannot be validated without it.
    pub fn precedes_validation(self) -> bool {
        matches!(self, Self::Namespaces | Self::Crds)
    }
}

/// Place of an object in the order of deletion: custom resources first, so that their operator can still remove their
/// finalizers, then the reverse order of writing, and last what the ServiceAccount of the stack needs for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeleteOrder {
    /// Custom resources; everything else waits until they are gone.
    CustomResource,
    /// Any other kind.
    Stage(Reverse<Stage>),
    /// Roles and their bindings of a stack that is written as a ServiceAccount, which may have its permissions from them.
    Permissions,
}

impl DeleteOrder {
    /// Returns the place of an object.
    pub fn from_key(key: &ObjectKey) -> Self {
        if is_built_in_group(&key.group) { Self::Stage(Reverse(Stage::from_key(key))) } else { Self::CustomResource }
    }

    /// Returns the place of an object of a stack that is written as a ServiceAccount.
    pub fn from_impersonated_key(key: &ObjectKey) -> Self {
        if key.group == "rbac.authorization.k8s.io" { Self::Permissions } else { Self::from_key(key) }
    }

    /// Returns true for namespaces and CRDs: their content is waited for before they are deleted.
    pub fn has_content(self) -> bool {
        matches!(self, Self::Stage(Reverse(stage)) if stage.precedes_validation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_others_refer_to_are_written_first() {
        let stage = |group: &str, kind: &str| {
            Stage::from_key(&ObjectKey { group: group.into(), kind: kind.into(), namespace: None, name: "a".into() })
        };
        let written = [
            stage("", "Namespace"),
            stage("apiextensions.k8s.io", "CustomResourceDefinition"),
            stage("policy", "PodDisruptionBudget"),
            stage("", "ServiceAccount"),
            stage("rbac.authorization.k8s.io", "RoleBinding"),
            stage("", "ConfigMap"),
            stage("", "PersistentVolumeClaim"),
            stage("", "Service"),
            stage("apps", "Deployment"),
            stage("shop.example", "Widget"),
            stage("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ];
        assert!(written.is_sorted_by(|earlier, later| earlier < later));
        assert_eq!(stage("batch", "Job"), stage("apps", "StatefulSet"));
    }

    #[test]
    fn custom_resources_are_deleted_first_and_namespaces_last() {
        let order = |group: &str, kind: &str| {
            let key = ObjectKey { group: group.into(), kind: kind.into(), namespace: None, name: "a".into() };
            DeleteOrder::from_key(&key)
        };
        let deleted = [
            order("gateway.networking.k8s.io", "Gateway"),
            order("apiregistration.k8s.io", "APIService"),
            order("networking.k8s.io", "Ingress"),
            order("apps", "Deployment"),
            order("", "ConfigMap"),
            order("apiextensions.k8s.io", "CustomResourceDefinition"),
            order("", "Namespace"),
        ];
        assert!(deleted.is_sorted_by(|earlier, later| earlier < later));
        for group in ["shop.example", "autoscaling.k8s.io"] {
            assert_eq!(order(group, "Widget"), DeleteOrder::CustomResource, "{group}");
        }
        assert!(deleted.iter().all(|other| *other < DeleteOrder::Permissions));
    }
}
