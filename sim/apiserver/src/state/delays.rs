//! Delays of the simulated controllers.

use jiff::SignedDuration;

/// Delays of the controllers, and the age up to which history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerDelays {
    /// From the deletion of a namespace to the deletion of its content.
    pub namespace_termination: SignedDuration,
    /// From the creation of a namespace to its default ServiceAccount and ConfigMap.
    pub namespace_defaults: SignedDuration,
    /// From the creation of a CRD to its condition `Established`.
    pub crd_established: SignedDuration,
    /// From that condition to the first request that its kind accepts; zero by default.
    pub crd_served: SignedDuration,
    /// From the deletion of a CRD to the deletion of its custom resources.
    pub crd_finalization: SignedDuration,
    /// From the deletion of an owner to the deletion of its dependents.
    pub garbage_collection: SignedDuration,
    /// From a change of a ClusterRole to the rules of the roles that aggregate it.
    pub role_aggregation: SignedDuration,
    /// From the approval of a certificate signing request to its certificate.
    pub certificate_signing: SignedDuration,
    /// From a change to the reconciliation by the Deployment controller.
    pub deployment: SignedDuration,
    /// Same for the controller of ReplicaSets and ReplicationControllers.
    pub replica_set: SignedDuration,
    /// Same for the StatefulSet controller.
    pub stateful_set: SignedDuration,
    /// Same for the DaemonSet controller.
    pub daemon_set: SignedDuration,
    /// Same for the Job controller.
    pub job: SignedDuration,
    /// Same for the CronJob controller; also from a scheduled time to the Job.
    pub cron_job: SignedDuration,
    /// Same for the Endpoints controller.
    pub endpoints: SignedDuration,
    /// Same for the EndpointSlice controller.
    pub endpoint_slice: SignedDuration,
    /// From the creation of a pod to its assignment to a node.
    pub scheduling: SignedDuration,
    /// From the assignment to running containers.
    pub pod_start: SignedDuration,
    /// From running containers to readiness, for pods with a probe.
    pub pod_ready: SignedDuration,
    /// From the deletion of a pod to its removal.
    pub pod_stop: SignedDuration,
    /// Run time of a container that exits by itself: one of a Job, or one that crashes.
    pub container_ends: SignedDuration,
    /// Age of the oldest revision at which a watch may start.
    pub history: SignedDuration,
}

impl ControllerDelays {
    /// Returns the same delays with a gap between the condition `Established` of a CRD and the first request that its kind
    /// accepts, as several API servers behind one address have it.
    #[must_use]
    pub fn with_crd_gap(self) -> Self {
        Self { crd_served: SignedDuration::from_millis(100), ..self }
    }
}

impl Default for ControllerDelays {
    fn default() -> Self {
        Self {
            namespace_termination: SignedDuration::from_millis(500),
            namespace_defaults: SignedDuration::from_millis(50),
            crd_established: SignedDuration::from_millis(100),
            crd_served: SignedDuration::ZERO,
            crd_finalization: SignedDuration::from_millis(200),
            garbage_collection: SignedDuration::from_millis(500),
            role_aggregation: SignedDuration::from_millis(20),
            certificate_signing: SignedDuration::from_millis(20),
            deployment: SignedDuration::from_millis(20),
            replica_set: SignedDuration::from_millis(20),
            stateful_set: SignedDuration::from_millis(20),
            daemon_set: SignedDuration::from_millis(20),
            job: SignedDuration::from_millis(20),
            cron_job: SignedDuration::from_millis(20),
            endpoints: SignedDuration::from_millis(50),
            endpoint_slice: SignedDuration::from_millis(50),
            scheduling: SignedDuration::from_millis(20),
            pod_start: SignedDuration::from_millis(500),
            pod_ready: SignedDuration::from_millis(500),
            pod_stop: SignedDuration::from_millis(300),
            container_ends: SignedDuration::from_secs(1),
            history: SignedDuration::from_secs(300),
        }
    }
}
