//! The controllers of the control plane, which run the tasks that changes have scheduled.

mod controller_revisions;
mod counting;
mod crd;
mod cron_job;
mod cron_schedule;
mod daemon_set;
mod deployment;
mod deployment_rollout;
mod deployment_sets;
mod deployment_status;
mod endpoints;
mod garbage_collector;
mod job;
mod job_status;
mod kubelet;
pub(crate) mod namespace;
pub(crate) mod node;
mod owned_objects;
mod replica_set;
pub(crate) mod role_aggregation;
mod rollout;
pub(crate) mod run;
mod scheduler;
mod stateful_set;
mod template_hash;
mod volume_protection;
mod writes;
