//! In which order kinds are written. Deletes go the other way round.

use sindri_model::ObjectKey;

/// When an object is written: what others refer to comes before them. Within a stage the bundle's order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Other objects live in them.
    Namespaces,
    /// Other objects are instances of them; the next stage waits until they are served.
    Definitions,
    /// What limits or classifies objects that come later.
    Policies,
    /// Accounts and roles.
    Rights,
    /// Who has which role.
    Bindings,
    /// What programs read when they start.
    Configuration,
    /// What programs keep their data in.
    Storage,
    /// How programs are found: they see the addresses of services that were there before them.
    Services,
    /// Programs.
    Workloads,
    /// Every other kind, custom resources among them.
    Rest,
    /// What is asked about every later write: it must not stand in the way of its own stack.
    Gates,
}

impl Stage {
    /// The stage of an object.
    pub fn of(key: &ObjectKey) -> Self {
        match (key.group.as_str(), key.kind.as_str()) {
            ("", "Namespace") => Self::Namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definitions,
            ("", "ResourceQuota" | "LimitRange") => Self::Policies,
            ("scheduling.k8s.io" | "storage.k8s.io" | "node.k8s.io" | "policy", _) => Self::Policies,
            ("networking.k8s.io", "NetworkPolicy" | "IngressClass") => Self::Policies,
            ("", "ServiceAccount") | ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => Self::Rights,
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Self::Bindings,
            ("", "Secret" | "ConfigMap") => Self::Configuration,
            ("", "PersistentVolume" | "PersistentVolumeClaim") => Self::Storage,
            ("", "Service" | "Endpoints") | ("discovery.k8s.io", "EndpointSlice") => Self::Services,
            ("", "Pod" | "ReplicationController") | ("apps" | "batch", _) => Self::Workloads,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Gates,
            _ => Self::Rest,
        }
    }

    /// Whether it is written before the bundle is validated: the rest could not be checked without it.
    pub fn comes_before_validation(self) -> bool {
        matches!(self, Self::Namespaces | Self::Definitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_refer_to_is_written_first() {
        let stage = |group: &str, kind: &str| {
            Stage::of(&ObjectKey { group: group.into(), kind: kind.into(), namespace: None, name: "a".into() })
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
}
