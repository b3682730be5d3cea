//! Steps of a scenario.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duration::Span;
use super::expectation::{Expectation, ExpectedCondition, ObjectRef};

/// One step.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The operator submits a revision. The first one creates the stack and targets it.
    Submit(Submit),
    /// The operator asks the agents of a stack for their plans of a text that is not submitted, and waits for them.
    Propose(Propose),
    /// The operator deletes a stack.
    Delete(StackRef),
    /// The operator targets a stack at an agent.
    Target(StackTarget),
    /// The operator removes the target of a stack at an agent.
    Untarget(StackTarget),
    /// The operator gives a stack and an agent the same label, which targets the stack at the agent.
    Label(LabelTarget),
    /// The operator removes the label from the agent.
    Unlabel(LabelTarget),
    /// The operator annotates a stack.
    Annotate(StackAnnotation),
    /// The operator approves the held deletions of a stack.
    Approve(StackRef),
    /// The operator rejects the held deletions of a stack.
    Reject(StackRef),
    /// The operator activates or deactivates an agent.
    Activate(Activation),
    /// The operator deletes an agent at the broker. Its process goes on with a key that is no longer valid.
    DeleteAgent(AgentRef),
    /// The operator creates the agent again under the same name, and restarts it with its new key.
    CreateAgent(AgentRef),
    /// Copies the database of the broker.
    Backup,
    /// Replaces the database by the copy, while the broker is down for a moment.
    Restore(Restore),
    /// Copies the state of the API server of a cluster.
    SnapshotEtcd(ClusterRef),
    /// Replaces the state of the API server of a cluster by the copy, while it is down for a moment.
    RestoreEtcd(ClusterRef),
    /// The database of the broker stops responding.
    Stall,
    /// The database responds again.
    Resume,
    /// The database stops responding to one broker, as with a connection that swallows packets.
    StallFor(BrokerRef),
    /// The database responds to this broker again.
    ResumeFor(BrokerRef),
    /// Waits for a report of an agent, or for the removal of a stack.
    Await(Await),
    /// Lets time pass.
    Advance(Span),
    /// Lets a number of polling intervals pass.
    Polls(u32),
    /// Lets a number of polling intervals pass, in which the agent of a cluster writes nothing.
    Quiet(Quiet),
    /// Cuts the network between two hosts.
    Partition(Link),
    /// Repairs a partition.
    Repair(Link),
    /// Sets the latency between two hosts.
    Latency(Latency),
    /// Kills the process of a host.
    Kill(String),
    /// Starts a killed process again.
    Restart(String),
    /// Stops the process of a host, as SIGSTOP does.
    Pause(String),
    /// Lets a stopped process go on.
    Continue(String),
    /// Makes requests of the agent to the API server of a cluster fail.
    Fail(ClusterFault),
    /// Ends the faults of the API server of a cluster.
    Heal(ClusterRef),
    /// Another client creates objects.
    Create(CreateObject),
    /// Another client changes an object.
    Edit(EditObject),
    /// Another client deletes an object.
    Remove(ObjectRef),
    /// Checks an expectation now.
    Check(Expectation),
}

impl Step {
    /// Returns its name in scenario files.
    pub fn name(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields.into_iter().next().map(|(name, _)| name).unwrap_or_default(),
            Ok(Value::String(name)) => name,
            _ => String::new(),
        }
    }
}

/// A revision to submit.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The stack.
    pub stack: String,
    /// File below `fixtures/bundles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The bundle itself, instead of a file; `${NAME}` stands for the id of the stack of that name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yaml: Option<String>,
    /// Agents that a new stack is targeted at; all of them if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
}

/// A text that is proposed, and the plans that the agents are expected to make.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Propose {
    /// The stack, which was submitted before.
    pub stack: String,
    /// File below `fixtures/bundles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The bundle itself, instead of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yaml: Option<String>,
    /// The agent whose plan is checked; all of them if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Parts of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
    /// True if the text would change the cluster, false if it would not; either if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<bool>,
    /// True if a pass with the text would fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails: bool,
    /// Longest wait; one polling interval if left out, because a proposal ends the wait of a poll.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
}

/// A stack by name.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StackRef {
    /// The stack.
    pub stack: String,
}

/// A stack and an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StackTarget {
    /// The stack.
    pub stack: String,
    /// The agent.
    pub agent: String,
}

/// A label that a stack and an agent share.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LabelTarget {
    /// The stack.
    pub stack: String,
    /// The agent.
    pub agent: String,
    /// The label.
    pub label: String,
}

/// An annotation of a stack.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StackAnnotation {
    /// The stack.
    pub stack: String,
    /// Name of the annotation.
    pub key: String,
    /// Its value; removed if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Activation of an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// The agent.
    pub agent: String,
    /// True to activate it, false to deactivate it.
    pub active: bool,
}

/// An agent by name.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRef {
    /// The agent.
    pub agent: String,
}

/// Restore of a backup.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// True if the operator declares the restore to the broker; otherwise the broker has to detect it.
    pub declared: bool,
}

/// A broker by the name of its host: `broker`, `broker-2` and so on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerRef {
    /// The broker.
    pub broker: String,
}

/// A cluster by the name of its agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterRef {
    /// The cluster.
    pub cluster: String,
}

/// Something to wait for: exactly one of `applied`, `gone`, `failed` and `condition`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    /// The stack.
    pub stack: String,
    /// One agent; every agent that the stack was ever targeted at if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent reported success for this revision of the stack, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<usize>,
    /// No object of the stack is left, and the broker knows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The agent reported a failure of the newest revision with this text in its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The broker knows this condition of the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ExpectedCondition>,
    /// Longest wait; two polling intervals if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
}

/// A period without writes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Quiet {
    /// The cluster.
    pub cluster: String,
    /// Number of polling intervals.
    pub polls: u32,
}

/// Two hosts: `broker`, an agent by name, or its API server as `NAME-api`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The hosts.
    pub between: [String; 2],
}

/// Latency of the network between two hosts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The hosts.
    pub between: [String; 2],
    /// Shortest travel time of a packet.
    pub min: Span,
    /// Longest travel time of a packet.
    pub max: Span,
}

/// Fault of requests of the agent to its API server: exactly one of `status`, `lose_response`, `cut`, `rewrite`
/// and `panic`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFault {
    /// The cluster.
    pub cluster: String,
    /// Words that the request contains (`PATCH configmaps/a dry-run`) or does not contain (`!dry-run`); every request
    /// if left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requests: String,
    /// Status of the response; the request is not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `Retry-After` of that response, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The request is carried out, and the response is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lose_response: bool,
    /// The connection is cut before the request is carried out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// JSON merge patch that changes the object in the request, as an admission webhook would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Value>,
    /// The code of the agent panics when it sends the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub panic: bool,
    /// Number of requests that fail; all until `heal` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// Objects that another client creates.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CreateObject {
    /// The cluster.
    pub cluster: String,
    /// The manifests; `${NAME}` stands for the id of the stack of that name.
    pub yaml: String,
}

/// A change that another client makes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EditObject {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: String,
    /// JSON merge patch.
    pub merge: Value,
    /// True to change the status subresource, as a controller does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub status: bool,
}
