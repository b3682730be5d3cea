//! The state of one server: its store, registry, watches, and the schedule of its controllers.

pub(crate) mod container_rules;
pub(crate) mod crd_serving;
pub(crate) mod delays;
pub(crate) mod pod_outcome;
pub(crate) mod schedule;
pub(crate) mod selector;
pub(crate) mod server_state;
pub(crate) mod watch;
pub(crate) mod watches;
pub(crate) mod workloads;
