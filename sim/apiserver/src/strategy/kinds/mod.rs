//! The strategy of each kind.

mod certificate_signing_request;
mod config_map;
mod controller_revision;
mod crd;
mod cron_job;
mod custom_resource;
mod daemon_set;
mod deployment;
mod endpoints;
mod event;
mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod lease;
pub(crate) mod namespace;
mod namespace_settings;
mod network_policy;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod replica_set;
mod role;
mod role_binding;
mod secret;
pub(super) mod service;
mod stateful_set;
mod webhook_configuration;

use super::Strategy;
use crate::registry::resource::Resource;

/// Strategy of kinds without own rules.
struct DefaultStrategy;

impl Strategy for DefaultStrategy {}

/// Strategy of kinds whose only own rule is that a PUT needs a resourceVersion.
struct ConditionalUpdates;

impl Strategy for ConditionalUpdates {
    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

/// Strategy of kinds of storage without other rules.
struct StorageKind {
    /// True if a PUT needs a resourceVersion.
    needs_version: bool,
}

impl Strategy for StorageKind {
    fn allows_unconditional_update(&self) -> bool {
        !self.needs_version
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Returns the strategy of a resource.
pub(crate) fn strategy_for(resource: &Resource) -> &'static dyn Strategy {
    if resource.custom {
        return &custom_resource::CustomResource;
    }
    match resource.kind.as_str() {
        "APIService" | "RuntimeClass" | "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => {
            &ConditionalUpdates
        }
        "CSIDriver" | "CSINode" | "VolumeAttachment" => &StorageKind { needs_version: true },
        "CertificateSigningRequest" => &certificate_signing_request::CertificateSigningRequest,
        "ClusterRole" | "Role" => &role::Role,
        "ClusterRoleBinding" | "RoleBinding" => &role_binding::RoleBinding,
        "ConfigMap" => &config_map::ConfigMap,
        "ControllerRevision" => &controller_revision::ControllerRevision,
        "CronJob" => &cron_job::CronJob,
        "CustomResourceDefinition" => &crd::CustomResourceDefinition,
        "DaemonSet" => &daemon_set::DaemonSet,
        "Deployment" => &deployment::Deployment,
        "Endpoints" => &endpoints::Endpoints,
        "EndpointSlice" => &endpoints::EndpointSlice,
        "Event" => &event::Event,
        "HorizontalPodAutoscaler" => &horizontal_pod_autoscaler::HorizontalPodAutoscaler,
        "Ingress" => &ingress::Ingress,
        "Job" => &job::Job,
        "Lease" => &lease::Lease,
        "LimitRange" => &namespace_settings::LimitRange,
        "Namespace" => &namespace::Namespace,
        "NetworkPolicy" => &network_policy::NetworkPolicy,
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            &webhook_configuration::WebhookConfiguration
        }
        "Node" => &node::Node,
        "PersistentVolume" => &persistent_volume::PersistentVolume,
        "PersistentVolumeClaim" => &persistent_volume_claim::PersistentVolumeClaim,
        "Pod" => &pod::Pod,
        "PodDisruptionBudget" => &pod_disruption_budget::PodDisruptionBudget,
        "PodTemplate" => &pod::PodTemplate,
        "ReplicaSet" => &replica_set::ReplicaSet,
        "ReplicationController" => &replica_set::ReplicationController,
        "ResourceQuota" => &namespace_settings::ResourceQuota,
        "Secret" => &secret::Secret,
        "Service" => &service::Service,
        "ServiceAccount" => &namespace_settings::ServiceAccount,
        "StorageClass" => &StorageKind { needs_version: false },
        "StatefulSet" => &stateful_set::StatefulSet,
        _ => &DefaultStrategy,
    }
}
