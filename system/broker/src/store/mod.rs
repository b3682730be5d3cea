//! What the broker must remember, as verbs of the domain.
//!
//! A store has no clock and no entropy of its own: ids and times come with each call. Each call is one
//! transaction; when it returns, what it did is durable. The future of a call does nothing until it is polled.

mod sqlite;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use jiff::Timestamp;
use sindri_model::wire::{
    Agent, AgentEvent, AgentGeneratorRegistration, AgentTarget, DeploymentObject, Generator, HeartbeatReport, Stack,
    UpdateAgentRequest,
};
use sindri_model::{AgentId, Epoch, EventId, GeneratorId, Pak, PakDigest, RevisionId, StackId};
use thiserror::Error;

pub use sqlite::{OpenError, SqliteStore};

/// The result of a call to a store, later.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What the broker must remember.
pub trait Store: Send + Sync {
    /// Whether the store answers.
    fn ping(&self) -> Stored<'_, ()>;

    /// Whether there is an administrator's key.
    fn has_admin(&self) -> Stored<'_, bool>;
    /// Records the administrator's key, unless there is one; says whether it did.
    fn create_admin(&self, key: KeyRecord, at: Timestamp) -> Stored<'_, bool>;
    /// The keys with this short token, usually one or none.
    fn keys(&self, short: String) -> Stored<'_, Vec<(PakDigest, KeyHolder)>>;

    /// Records a new agent with its key and its first registrations.
    fn create_agent(
        &self,
        agent: Agent,
        key: KeyRecord,
        registrations: Vec<AgentGeneratorRegistration>,
    ) -> Stored<'_, ()>;
    /// Every agent, by name.
    fn agents(&self) -> Stored<'_, Vec<Agent>>;
    /// One agent.
    fn agent(&self, agent: AgentId) -> Stored<'_, Agent>;
    /// The agent of that name in that cluster.
    fn find_agent(&self, name: String, cluster_name: String) -> Stored<'_, Agent>;
    /// Changes what is given and leaves the rest.
    fn update_agent(&self, agent: AgentId, changes: UpdateAgentRequest, at: Timestamp) -> Stored<'_, Agent>;
    /// Deletes an agent, its key, its targets and its registrations.
    fn delete_agent(&self, agent: AgentId, at: Timestamp) -> Stored<'_, ()>;
    /// Notes that an agent lives.
    fn record_heartbeat(&self, agent: AgentId, report: HeartbeatReport, at: Timestamp) -> Stored<'_, ()>;

    /// Records a new generator with its key.
    fn create_generator(&self, generator: Generator, key: KeyRecord) -> Stored<'_, ()>;
    /// Every generator, by name.
    fn generators(&self) -> Stored<'_, Vec<Generator>>;
    /// One generator.
    fn generator(&self, generator: GeneratorId) -> Stored<'_, Generator>;
    /// Registers an agent with a generator.
    fn register(&self, registration: AgentGeneratorRegistration) -> Stored<'_, ()>;
    /// Ends a registration. Targets that exist stay: taking a stack away is said by removing its target.
    fn unregister(&self, generator: GeneratorId, agent: AgentId) -> Stored<'_, ()>;
    /// The registrations of an agent.
    fn registrations_of_agent(&self, agent: AgentId) -> Stored<'_, Vec<AgentGeneratorRegistration>>;
    /// The registrations with a generator.
    fn registrations_with(&self, generator: GeneratorId) -> Stored<'_, Vec<AgentGeneratorRegistration>>;

    /// Records a new stack.
    fn create_stack(&self, stack: Stack) -> Stored<'_, ()>;
    /// The stacks that live, by name; of one generator, or of all.
    fn stacks(&self, owner: Option<GeneratorId>) -> Stored<'_, Vec<Stack>>;
    /// A stack that lives.
    fn stack(&self, stack: StackId) -> Stored<'_, Stack>;
    /// Deletes a stack: its targets go, and one marker tells every agent that ever received it to remove it.
    fn delete_stack(&self, stack: StackId, marker: RevisionId, at: Timestamp) -> Stored<'_, ()>;
    /// The stacks that are targeted at an agent.
    fn stacks_of_agent(&self, agent: AgentId) -> Stored<'_, Vec<Stack>>;

    /// Appends a revision and returns it with its sequence. Sequences never repeat or go back.
    fn append_revision(&self, revision: NewRevision) -> Stored<'_, DeploymentObject>;
    /// The revisions of a stack that lives, ascending; without what was meant for one agent only.
    fn revisions(&self, stack: StackId) -> Stored<'_, Vec<DeploymentObject>>;
    /// One revision or removal, of whatever stack.
    fn revision(&self, revision: RevisionId) -> Stored<'_, RevisionRecord>;

    /// Targets a stack at an agent that is registered with the stack's generator.
    fn add_target(&self, target: AgentTarget) -> Stored<'_, ()>;
    /// Takes a stack away from an agent. If the agent has received it, `removal` becomes its instruction to remove it.
    fn remove_target(&self, agent: AgentId, stack: StackId, removal: RevisionId, at: Timestamp) -> Stored<'_, ()>;
    /// The targets of an agent.
    fn targets(&self, agent: AgentId) -> Stored<'_, Vec<AgentTarget>>;
    /// The full desired set of one agent: live stacks at their newest revision, and the removals that it has
    /// not confirmed, ascending. Never an increment: absence means nothing.
    fn desired_set(&self, agent: AgentId) -> Stored<'_, DesiredSet>;
    /// The same, for the agent itself: notes, durably, what it receives with it.
    fn hand_out(&self, agent: AgentId) -> Stored<'_, DesiredSet>;
    /// Whether a stack is, or ever was, the agent's business.
    fn concerns(&self, agent: AgentId, stack: StackId) -> Stored<'_, bool>;

    /// Records an outcome. With a key that this agent has used before, nothing is recorded and the first
    /// event returned. A success of a removal confirms it.
    fn record_event(&self, event: AgentEvent, idempotency_key: Option<String>) -> Stored<'_, AgentEvent>;
    /// What an agent reported, oldest first.
    fn events_of_agent(&self, agent: AgentId) -> Stored<'_, Vec<AgentEvent>>;
    /// What every agent reported, oldest first.
    fn events(&self) -> Stored<'_, Vec<AgentEvent>>;
    /// One event.
    fn event(&self, event: EventId) -> Stored<'_, AgentEvent>;
}

/// What is kept of a key.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// For lookup.
    pub short: String,
    /// For proof.
    pub digest: PakDigest,
}

impl From<&Pak> for KeyRecord {
    fn from(pak: &Pak) -> Self {
        Self { short: pak.short().to_owned(), digest: pak.digest() }
    }
}

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHolder {
    /// The administrator's.
    Admin,
    /// An agent's.
    Agent(AgentId),
    /// A generator's.
    Generator(GeneratorId),
}

/// A revision before it has its sequence.
#[derive(Clone, Debug)]
pub struct NewRevision {
    /// Its id.
    pub id: RevisionId,
    /// The stack.
    pub stack: StackId,
    /// The bundle.
    pub yaml_content: String,
    /// Whether it tells agents to remove the stack.
    pub is_deletion_marker: bool,
    /// When it was submitted.
    pub at: Timestamp,
}

/// A revision as the store has it.
#[derive(Clone, Debug)]
pub struct RevisionRecord {
    /// What travels.
    pub object: DeploymentObject,
    /// The one agent that it is meant for, if it is not for all.
    pub only_for: Option<AgentId>,
    /// Whose stack it belongs to.
    pub generator: GeneratorId,
}

/// What is wanted of one agent.
#[derive(Clone, Debug)]
pub struct DesiredSet {
    /// The life of the database.
    pub epoch: Epoch,
    /// One per stack, ascending by sequence.
    pub objects: Vec<DeploymentObject>,
}

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noun {
    /// An agent.
    Agent,
    /// An event.
    Event,
    /// A generator.
    Generator,
    /// A registration of an agent with a generator.
    Registration,
    /// A revision of a stack.
    Revision,
    /// A stack.
    Stack,
    /// A target.
    Target,
}

impl Noun {
    /// As a code says it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Event => "agent_event",
            Self::Generator => "generator",
            Self::Registration => "registration",
            Self::Revision => "deployment_object",
            Self::Stack => "stack",
            Self::Target => "target",
        }
    }
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Event => "event",
            Self::Generator => "generator",
            Self::Registration => "registration",
            Self::Revision => "deployment object",
            Self::Stack => "stack",
            Self::Target => "target",
        })
    }
}

/// A call to a store failed; nothing was changed by it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// What the call is about does not exist.
    #[error("{noun} {name} does not exist")]
    NotFound {
        /// What it is.
        noun: Noun,
        /// Which one.
        name: String,
    },
    /// It exists already.
    #[error("{noun} {name} exists already")]
    Duplicate {
        /// What it is.
        noun: Noun,
        /// Which one.
        name: String,
    },
    /// Something that the call refers to does not exist.
    #[error("{noun} {name} does not exist")]
    MissingReference {
        /// What it is.
        noun: Noun,
        /// Which one.
        name: String,
    },
    /// The agent does not accept stacks of this generator.
    #[error("agent {agent} is not registered with generator {generator}, whose stack this is")]
    NotRegistered {
        /// The agent.
        agent: AgentId,
        /// The generator.
        generator: GeneratorId,
    },
    /// The store itself failed. Whether the change is durable is not known.
    #[error("the store failed: {0}")]
    Failed(String),
}
