//! What ready means, kind by kind. A kind is told by its group too: others have a `Service` of their own.

mod cluster;
mod jobs;
mod network;
mod other;
mod pod;
mod scaling;
mod storage;
mod workloads;

use crate::health::Health;
use crate::object::Object;

/// By what is known of its kind.
pub(crate) fn assess(object: Object<'_>) -> Health {
    match (object.group(), object.kind()) {
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workloads::replica_set(object),
        ("batch", "Job") => jobs::job(object),
        ("batch", "CronJob") => jobs::cron_job(object),
        ("", "Pod") => pod::pod(object),
        ("", "PersistentVolumeClaim") => storage::claim(object),
        ("", "PersistentVolume") => storage::volume(object),
        ("", "Service") => network::service(object),
        ("networking.k8s.io", "Ingress") => network::ingress(object),
        ("", "Namespace") => cluster::namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::definition(object),
        ("apiregistration.k8s.io", "APIService") => cluster::api_service(object),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::autoscaler(object),
        ("policy", "PodDisruptionBudget") => scaling::disruption_budget(object),
        // Nothing of a Secret is ever looked at.
        ("", "Secret") => Health::ready("Exists", ""),
        (_, _) => other::other(object),
    }
}

/// Whether the controller has not yet seen the newest spec. `None` if it has, or keeps no account of it.
fn not_observed(object: Object<'_>) -> Option<Health> {
    let generation = object.number(&["metadata", "generation"])?;
    let observed = object.number(&["status", "observedGeneration"])?;
    let message = format!("generation {generation} is not observed yet, only {observed}");
    (observed < generation).then(|| Health::progressing("GenerationNotObserved", message))
}

/// The same for kinds whose controllers always keep account: nothing is nothing yet.
fn not_yet_observed(object: Object<'_>) -> Option<Health> {
    if object.count(&["status", "observedGeneration"]) == 0 {
        return Some(Health::progressing("NotObserved", "its controller has not looked at it yet"));
    }
    not_observed(object)
}
