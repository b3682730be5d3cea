//! Interface of an environment.

use std::time::Duration;

use serde_json::Value;

use super::error::StepError;
use super::write_counts::WriteCounts;
use crate::hosts::OperatorJob;
use crate::http_faults::RecordedRequest;
use crate::journal::AgentWrite;
use crate::scenario::ClusterFault;

/// Event of hosts or of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Cuts the network between two hosts.
    Partition([String; 2]),
    /// Repairs a partition.
    Repair([String; 2]),
    /// Sets the shortest and the longest latency between two hosts.
    Latency([String; 2], Duration, Duration),
    /// Kills a process.
    Kill(String),
    /// Starts a killed process again.
    Restart(String),
    /// Stops a process, which keeps its memory and its connections.
    Pause(String),
    /// Lets a stopped process go on.
    Continue(String),
    /// Copies the database of the broker.
    Backup,
    /// Replaces the database of the broker by the copy.
    Restore {
        /// True if the operator declares the restore to the broker.
        declared: bool,
    },
    /// Copies the state of the API server of a cluster.
    SnapshotEtcd(String),
    /// Replaces the state of the API server of a cluster by the copy.
    RestoreEtcd(String),
    /// The database stops responding to this broker; to every broker if `None`.
    Stall(Option<String>),
    /// The database responds again to this broker; to every broker if `None`.
    Resume(Option<String>),
}

/// A request of another client to a cluster.
#[derive(Clone, Debug)]
pub struct ClusterCall {
    /// Method.
    pub method: http::Method,
    /// Path with its query.
    pub target: String,
    /// Type of the body.
    pub content_type: &'static str,
    /// Body.
    pub body: Vec<u8>,
}

/// Environment in which a scenario runs.
pub trait Environment {
    /// Returns the time since the start.
    fn now(&self) -> Duration;

    /// Returns the polling interval of the agents.
    fn polling_interval(&self) -> Duration;

    /// Lets time pass.
    fn advance(&mut self, by: Duration) -> Result<(), StepError>;

    /// Lets the operator carry out a job, and time pass until it is done.
    fn run_job(&mut self, job: OperatorJob, is_done: &dyn Fn() -> bool) -> Result<(), StepError>;

    /// Sends a request of another client to a cluster; returns status and body.
    fn call_cluster(&mut self, cluster: &str, call: ClusterCall) -> Result<(u16, Value), StepError>;

    /// Does something to hosts or to the network.
    fn act_on_hosts(&mut self, action: HostAction) -> Result<(), StepError>;

    /// Restarts every process of an agent with another key.
    fn replace_key(&mut self, agent: &str, key: String) -> Result<(), StepError>;

    /// Starts a fault of the API server of a cluster.
    fn fail_cluster(&mut self, fault: &ClusterFault) -> Result<(), StepError>;

    /// Ends the faults of the API server of a cluster.
    fn heal_cluster(&mut self, cluster: &str) -> Result<(), StepError>;

    /// Counts the writes of the agent of a cluster so far. Where only the agent's own counters tell, they restart with its
    /// process, and an apply that changes nothing counts too.
    fn count_writes(&mut self, cluster: &str) -> Result<WriteCounts, StepError>;

    /// Lists the writes of the agent of a cluster so far, in order.
    fn list_writes(&mut self, cluster: &str) -> Result<Vec<AgentWrite>, StepError>;

    /// Lists the requests of the agent of a cluster so far that have these words.
    fn list_requests(&mut self, cluster: &str, words: &str) -> Result<Vec<RecordedRequest>, StepError>;
}
