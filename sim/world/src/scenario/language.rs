//! The verbs of a scenario and the things that it expects.

use serde::Deserialize;
use serde_json::Value;
use sindri_model::wire::{ConditionStatus, StackState};

use super::Span;
use crate::chaos::ChaosKind;

/// One story.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its ending; filled in by the library.
    #[serde(skip)]
    pub name: String,
    /// One line.
    pub title: String,
    /// The behaviours that it proves, by id.
    pub proves: Vec<String>,
    /// Who takes part.
    pub fleet: Fleet,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// What holds at the end, also when the story was explored with faults.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// What holds at the end of the story as it is written, without further faults.
    #[serde(default)]
    pub expect_calm: Vec<Expectation>,
    /// Stacks that cannot be applied, which is the point of the story.
    #[serde(default)]
    pub failing: Vec<String>,
    /// The faults that are added when the story is explored with seeds.
    #[serde(default)]
    pub explore: Vec<ChaosKind>,
    /// Whether it is also played once for each event of its agents, with the agent killed at that event.
    #[serde(default)]
    pub kill_at_every_event: bool,
    /// The longest that everything may take to converge once the faults are over.
    #[serde(default = "default_converge")]
    pub converges_within: Span,
    /// Whether it also runs on real ports.
    #[serde(default)]
    pub real: bool,
}

impl Scenario {
    /// A story that is made by a program: these steps, and nothing to expect.
    pub fn of_steps(fleet: Fleet, steps: Vec<Step>) -> Self {
        Self {
            name: "unnamed".to_owned(),
            title: String::new(),
            proves: Vec::new(),
            fleet,
            steps,
            expect: Vec::new(),
            expect_calm: Vec::new(),
            failing: Vec::new(),
            explore: Vec::new(),
            kill_at_every_event: false,
            converges_within: default_converge(),
            real: false,
        }
    }
}

fn default_converge() -> Span {
    Span(std::time::Duration::from_secs(10 * 60))
}

/// Who takes part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The agents by name; each has a cluster of its own.
    pub agents: Vec<String>,
    /// Processes of each agent: `east`, `east-2` and so on, of which one acts.
    #[serde(default = "one")]
    pub replicas: usize,
    /// The one namespace that the agents may touch; without it, the whole cluster.
    pub namespace: Option<String>,
    /// Brokers on one database: `broker`, `broker-2` and so on.
    #[serde(default = "one")]
    pub brokers: usize,
    /// By how much the agents' clocks are ahead of everybody else's.
    #[serde(default)]
    pub clocks_ahead: Span,
}

impl Fleet {
    /// Agents with one process each, right clocks and one broker.
    pub fn of(agents: Vec<String>) -> Self {
        Self { agents, replicas: one(), namespace: None, brokers: one(), clocks_ahead: Span::default() }
    }
}

fn one() -> usize {
    1
}

/// One thing that happens.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The operator submits a revision; the stack is made and targeted the first time.
    Submit(Submit),
    /// The operator deletes a stack.
    Delete(StackRef),
    /// The operator targets a stack at an agent.
    Target(Targeting),
    /// The operator takes a stack away from an agent.
    Untarget(Targeting),
    /// The operator labels a stack and an agent alike, so that the stack goes to the agent.
    Label(Labelling),
    /// The operator takes the label from the agent.
    Unlabel(Labelling),
    /// The operator says how a stack is to be treated.
    Annotate(Annotating),
    /// The operator approves what is held back of a stack.
    Approve(StackRef),
    /// Or rejects it.
    Reject(StackRef),
    /// The operator lets an agent act, or rest.
    Activate(Activation),
    /// The operator deletes an agent at the broker. Its process goes on, with a key that opens nothing.
    Dismiss(AgentRef),
    /// The operator makes it anew under the same name, and starts it with its new key.
    Enlist(AgentRef),
    /// A copy of the broker's database is made.
    Backup,
    /// The copy is put in the place of the database, while the broker is down for a moment.
    Restore(Restore),
    /// The broker's database does not answer.
    Stall,
    /// It answers again.
    Resume,
    /// Waits until something is so.
    Await(Await),
    /// Lets time pass.
    Advance(Span),
    /// Lets so many polling intervals pass.
    Polls(u32),
    /// Nothing is written by the agent of a cluster for so many polling intervals.
    Quiet(Quiet),
    /// Cuts the network between two hosts.
    Partition(Link),
    /// Mends it.
    Repair(Link),
    /// Makes the network between two hosts slow.
    Latency(Latency),
    /// Kills the process of a host.
    Kill(String),
    /// Starts it again.
    Restart(String),
    /// The API server of a cluster answers wrongly, or not at all.
    Fail(ClusterFault),
    /// It is well again.
    Heal(ClusterRef),
    /// Someone else creates an object.
    Create(CreateObject),
    /// Someone else changes an object.
    Edit(ChangeObject),
    /// Someone else deletes an object.
    Remove(ObjectRef),
    /// Something holds right now.
    Check(Expectation),
}

/// A revision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The stack by name.
    pub stack: String,
    /// A file below `fixtures/bundles`.
    pub bundle: Option<String>,
    /// Or the text itself.
    pub yaml: Option<String>,
    /// The agents that it is targeted at when it is made; all of them if left out.
    pub to: Option<Vec<String>>,
}

/// A stack by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackRef {
    /// The stack.
    pub stack: String,
}

/// A stack and an agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targeting {
    /// The stack.
    pub stack: String,
    /// The agent.
    pub agent: String,
}

/// A label that a stack and an agent share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelling {
    /// The stack.
    pub stack: String,
    /// The agent.
    pub agent: String,
    /// The label.
    pub label: String,
}

/// An annotation of a stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annotating {
    /// The stack.
    pub stack: String,
    /// The name of the annotation.
    pub key: String,
    /// Its value; taken away if left out.
    pub value: Option<String>,
}

/// Whether an agent is to act.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// The agent.
    pub agent: String,
    /// It acts, or it rests.
    pub active: bool,
}

/// An agent by name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRef {
    /// The agent.
    pub agent: String,
}

/// A database that is restored from its backup.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// Whether the operator says so to the broker; if not, it has to notice by itself.
    pub declared: bool,
}

/// A cluster by the name of its agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterRef {
    /// The cluster.
    pub cluster: String,
}

/// Something to wait for: exactly one of `applied`, `gone`, `failed` and `condition`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    /// The stack.
    pub stack: String,
    /// One agent; every agent that the stack is targeted at if left out.
    pub agent: Option<String>,
    /// The agent reported success for this submission of the stack, counted from 1.
    pub applied: Option<usize>,
    /// Nothing of the stack is left, and the broker knows it.
    #[serde(default)]
    pub gone: bool,
    /// The agent reported a failure of the newest submission with this text in its message.
    pub failed: Option<String>,
    /// The broker knows this condition of the newest submission.
    pub condition: Option<Said>,
    /// How long it may take; two polling intervals if left out.
    pub within: Option<Span>,
}

/// What an agent says about a stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// Its reason.
    pub reason: Option<String>,
    /// Texts that its message has, all of them.
    #[serde(default)]
    pub message_has: Vec<String>,
}

/// A time without writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quiet {
    /// The cluster.
    pub cluster: String,
    /// How many polling intervals.
    pub polls: u32,
}

/// Two hosts: `broker`, an agent by name, or its API server as `NAME-api`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The hosts.
    pub between: [String; 2],
}

/// A slow network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The hosts.
    pub between: [String; 2],
    /// The shortest time of a packet.
    pub min: Span,
    /// The longest.
    pub max: Span,
}

/// What goes wrong with requests of the agent: a status, or `lose_answer`, or `cut`, or `rewrite`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFault {
    /// The cluster.
    pub cluster: String,
    /// Words that the request has (`PATCH configmaps/a dry-run`), or has not (`!dry-run`); every request if left out.
    #[serde(default)]
    pub requests: String,
    /// Answered with this status, and not carried out.
    pub status: Option<u16>,
    /// With this `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// Carried out, and the answer is lost.
    #[serde(default)]
    pub lose_answer: bool,
    /// Neither carried out nor answered.
    #[serde(default)]
    pub cut: bool,
    /// What is sent is changed by this merge patch, as a webhook of the cluster would.
    pub rewrite: Option<Value>,
    /// How often; until it is healed if left out.
    pub times: Option<u32>,
}

/// An object by its key, such as `apps/Deployment shop/web`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectRef {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: String,
}

/// An object that someone else makes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateObject {
    /// The cluster.
    pub cluster: String,
    /// The manifest; `${NAME}` stands for the id of the stack of that name.
    pub yaml: String,
}

/// A change that someone else makes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeObject {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: String,
    /// A JSON merge patch.
    pub merge: Value,
    /// Of its status, as a controller would do it.
    #[serde(default)]
    pub status: bool,
}

/// Something that holds.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// An object is there, with these fields.
    Object(ObjectCheck),
    /// An object is not there.
    Absent(ObjectRef),
    /// Events were recorded.
    Events(EventCheck),
    /// The agent of a cluster wrote these, in this order; others may stand between.
    Written(Written),
    /// The agent of a cluster never wrote any of these.
    Unwritten(Written),
    /// The broker knows a condition of a stack.
    Condition(ConditionCheck),
    /// Everything about a stack together is in one of the states of the broker.
    State(StateCheck),
    /// The broker has heard of an agent lately.
    Heartbeat(HeartbeatCheck),
    /// The agent of a cluster asked for something no more often than this.
    Asked(AskedCheck),
    /// Requests of the agent that match came after each other with these waits between them, to the second.
    Retried(Retried),
}

/// A condition of a stack at an agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionCheck {
    /// The stack.
    pub stack: String,
    /// The agent.
    pub agent: String,
    /// What it said.
    pub said: Said,
}

/// How a stack is everywhere together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateCheck {
    /// The stack.
    pub stack: String,
    /// How it is.
    pub is: StackState,
}

/// How long ago an agent was last heard of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatCheck {
    /// The agent.
    pub agent: String,
    /// At most so long ago.
    pub within: Span,
}

/// An object and what it holds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectCheck {
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: String,
    /// Fields that it has; others may be there.
    #[serde(default)]
    pub has: Value,
}

/// Events of a stack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventCheck {
    /// The stack.
    pub stack: String,
    /// Of one agent; of all if left out.
    pub agent: Option<String>,
    /// `SUCCESS` or `FAILURE`.
    pub status: String,
    /// About a removal, or about a revision; either if left out.
    pub deleted: Option<bool>,
    /// Texts that one message has, all of them.
    #[serde(default)]
    pub message_has: Vec<String>,
    /// How many.
    pub count: Count,
}

/// A number, or at least a number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// Exactly so many.
    Exactly(usize),
    /// So many or more.
    AtLeast {
        /// How many at least.
        at_least: usize,
    },
}

/// Writes as `create ConfigMap shop/a`, `change …` or `delete …`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The cluster.
    pub cluster: String,
    /// The writes.
    pub writes: Vec<String>,
}

/// How often something was asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedCheck {
    /// The cluster.
    pub cluster: String,
    /// Words of the request, as in `fail`.
    pub requests: String,
    /// No more often.
    pub at_most: usize,
    /// And no less often.
    #[serde(default)]
    pub at_least: usize,
}

/// The pace of repeated requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retried {
    /// The cluster.
    pub cluster: String,
    /// Words of the request, as in `fail`.
    pub requests: String,
    /// The waits between the first ones.
    pub waits: Vec<Span>,
}
