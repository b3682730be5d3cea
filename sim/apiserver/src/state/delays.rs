//! Delays of the simulated controllers.

use jiff::SignedDuration;

/// How long the controllers of the control plane take, and how long history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerDelays {
    /// From the deletion of a namespace to the deletion of its content.
    pub namespace_termination: SignedDuration,
    /// From the creation of a namespace to its default service account.
    pub namespace_defaults: SignedDuration,
    /// From the creation of a definition to its condition `Established`.
    pub crd_established: SignedDuration,
    /// From that to its kind being served.
    pub crd_served: SignedDuration,
    /// From the deletion of a definition to the deletion of its instances.
    pub crd_finalization: SignedDuration,
    /// From the deletion of an owner to the deletion of its dependents.
    pub garbage_collection: SignedDuration,
    /// From a change to the deployment controller's look at it.
    pub deployment: SignedDuration,
    /// The same of the controller of replica sets.
    pub replica_set: SignedDuration,
    /// The same of the controller of stateful sets.
    pub stateful_set: SignedDuration,
    /// The same of the controller of daemon sets.
    pub daemon_set: SignedDuration,
    /// The same of the controller of jobs.
    pub job: SignedDuration,
    /// The same of the controller of cron jobs, and from a scheduled time to the job.
    pub cron_job: SignedDuration,
    /// The same of the controller of endpoints.
    pub endpoints: SignedDuration,
    /// The same of the controller of endpoint slices.
    pub endpoint_slice: SignedDuration,
    /// From the creation of a pod to its node.
    pub scheduling: SignedDuration,
    /// From that to its containers running.
    pub pod_start: SignedDuration,
    /// From that to its readiness, where a probe has to find out.
    pub pod_ready: SignedDuration,
    /// From the deletion of a pod to its end.
    pub pod_stop: SignedDuration,
    /// How long a container runs that ends by itself: that of a job, and one that crashes.
    pub container_ends: SignedDuration,
    /// How far back a watch may start.
    pub history: SignedDuration,
}

impl Default for ControllerDelays {
    fn default() -> Self {
        Self {
            namespace_termination: SignedDuration::from_millis(500),
            namespace_defaults: SignedDuration::from_millis(50),
            crd_established: SignedDuration::from_millis(100),
            crd_served: SignedDuration::from_millis(100),
            crd_finalization: SignedDuration::from_millis(200),
            garbage_collection: SignedDuration::from_millis(500),
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
