//! Health per kind. Kinds are matched with their group: other groups have a `Service` of their own.

mod cluster;
mod jobs;
mod network;
mod observed;
mod other;
mod pod;
mod scaling;
mod storage;
mod workloads;

use crate::health::Health;
use crate::object::Object;

/// Determines the health of an object by the rules for its kind.
pub(crate) fn assess(object: Object<'_>) -> Health {
    match (object.group(), object.kind()) {
        ("apps", "Deployment") => workloads::assess_deployment(object),
        ("apps", "DaemonSet") => workloads::assess_daemon_set(object),
        ("apps", "StatefulSet") => workloads::assess_stateful_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workloads::assess_replica_set(object),
        ("batch", "Job") => jobs::assess_job(object),
        ("batch", "CronJob") => jobs::assess_cron_job(object),
        ("", "Pod") => pod::assess_pod(object),
        ("", "PersistentVolumeClaim") => storage::assess_claim(object),
        ("", "PersistentVolume") => storage::assess_volume(object),
        ("", "Service") => network::assess_service(object),
        ("networking.k8s.io", "Ingress") => network::assess_ingress(object),
        ("", "Namespace") => cluster::assess_namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::assess_custom_resource_definition(object),
        ("apiregistration.k8s.io", "APIService") => cluster::assess_api_service(object),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::assess_autoscaler(object),
        ("policy", "PodDisruptionBudget") => scaling::assess_disruption_budget(object),
        // The content of a Secret is never read.
        ("", "Secret") => Health::ready("Exists", ""),
        (_, _) => other::assess_other(object),
    }
}
