//! What goes into a store and comes out of it, where it is not what travels on the wire.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use sindri_model::wire::{
    Agent, AgentStackStatus, AgentStatus, ApprovalState, DeploymentObject, HeartbeatReport, WebhookDelivery,
    WebhookResponse,
};
use sindri_model::{
    AgentId, ApprovalId, AuditId, DeliveryId, Entropy, Epoch, GeneratorId, Pak, PakDigest, PakId, RevisionId, Sequence,
    StackId, WebhookId,
};
use thiserror::Error;

/// What comes with every change: who makes it, when, and where fresh ids come from.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// When.
    pub at: Timestamp,
    /// For ids that the change needs.
    pub entropy: Entropy,
    /// Who; nobody means the broker itself.
    pub actor: Option<KeyHolder>,
    /// Where the request came from.
    pub peer: Option<IpAddr>,
    /// With what it was made.
    pub user_agent: Option<String>,
    /// The same key of the same actor means the same request, sent again.
    pub idempotency_key: Option<String>,
}

impl Stamp {
    /// Of something that the broker does by itself.
    pub fn system(at: Timestamp, entropy: Entropy) -> Self {
        Self { at, entropy, actor: None, peer: None, user_agent: None, idempotency_key: None }
    }
}

/// Which part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The id of the last one that was seen.
    pub after: Option<String>,
    /// How many at most.
    pub limit: i64,
}

impl Page {
    /// The most that one answer holds.
    pub const LIMIT_MAX: i64 = 10_000;
    /// The first page, as long as a page can be.
    pub const FIRST: Self = Self { after: None, limit: Self::LIMIT_MAX };
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Moves whenever the set changes.
    pub version: Sequence,
    /// The version at which something last changed that the agent has to look at beside the set.
    pub nudged: Sequence,
    /// Whether the agent acts.
    pub status: AgentStatus,
    /// One per stack, ascending by sequence.
    pub objects: Vec<DesiredObject>,
}

/// One part of what is wanted of an agent.
#[derive(Clone, Debug)]
pub struct DesiredObject {
    /// What travels.
    pub object: DeploymentObject,
    /// Whether the agent has confirmed it as done.
    pub is_done: bool,
}

/// Where a database is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Era {
    /// How often it was restored, and one.
    pub epoch: Epoch,
    /// The last number that was given out.
    pub latest: Sequence,
}

/// Something that brokers remember has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// What is wanted of an agent, or its status; the new version of its desired set.
    DesiredSet(AgentId, Sequence),
    /// Which keys there are.
    Keys,
    /// Which messages wait to be sent.
    Deliveries,
    /// The epoch.
    Epoch,
}

/// What changed since a broker last asked.
#[derive(Clone, Debug)]
pub struct News {
    /// Ask for what comes after this next time.
    pub latest: Sequence,
    /// What changed.
    pub changes: Vec<Change>,
}

/// A heartbeat that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// When.
    pub at: Timestamp,
    /// What it said.
    pub report: HeartbeatReport,
}

/// Which stacks, events or agents of the fleet to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Everyone's.
    All,
    /// Those of this generator.
    Generator(GeneratorId),
    /// Those of the holder of this key.
    Key(PakId),
}

/// What is known of an agent in the fleet.
#[derive(Clone, Debug)]
pub struct FleetEntry {
    /// The agent; a deleted one only while it owes something.
    pub agent: Agent,
    /// When it last reported something.
    pub last_event_at: Option<Timestamp>,
    /// What is wanted of it and not confirmed.
    pub pending: i64,
    /// Revisions that it calls degraded.
    pub degraded: i64,
    /// Revisions that it calls failing.
    pub failing: i64,
}

/// The newest revision of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestRevision {
    /// Its id.
    pub id: RevisionId,
    /// Its sequence.
    pub sequence: Sequence,
    /// Whether it tells agents to remove the stack.
    pub is_deletion_marker: bool,
}

/// What agents say about a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackReports {
    /// Whose stack it is.
    pub generator: GeneratorId,
    /// What should be everywhere, if there is anything.
    pub newest: Option<NewestRevision>,
    /// Of every agent that it is wanted of or that has to remove it, by name.
    pub agents: Vec<AgentReport>,
}

/// What one agent says about a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReport {
    /// What it says.
    pub said: AgentStackStatus,
    /// The removal that it has to confirm.
    pub owes: Option<Sequence>,
}

/// Which entries of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// By kind of actor.
    pub actor_type: Option<String>,
    /// By actor.
    pub actor_id: Option<String>,
    /// By action; a trailing `*` matches any ending.
    pub action: Option<String>,
    /// By kind of resource.
    pub resource_type: Option<String>,
    /// By resource.
    pub resource_id: Option<String>,
    /// Not before.
    pub from: Option<Timestamp>,
    /// Not after.
    pub to: Option<Timestamp>,
    /// How many at most.
    pub limit: i64,
    /// How many to leave out.
    pub offset: i64,
    /// Those after this one, in place of an offset.
    pub after: Option<AuditId>,
}

/// The parts of a subscription that nobody may read, sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedParts {
    /// Where to send.
    pub url: Vec<u8>,
    /// The `Authorization` header.
    pub auth_header: Option<Vec<u8>>,
    /// What signs messages.
    pub signing_secret: Vec<u8>,
}

impl fmt::Debug for SealedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedParts")
    }
}

/// A subscription as the store has it.
#[derive(Clone, Debug)]
pub struct WebhookRecord {
    /// What may be shown.
    pub shown: WebhookResponse,
    /// What may not.
    pub sealed: SealedParts,
}

/// Which messages of a subscription.
#[derive(Clone, Debug)]
pub struct DeliveryFilter {
    /// The subscription.
    pub webhook: WebhookId,
    /// By status.
    pub status: Option<String>,
    /// How many to leave out.
    pub offset: i64,
    /// Which part of the rest.
    pub page: Page,
}

/// Who sends messages, and how long nobody else may.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The broker's or the agent's name.
    pub by: String,
    /// Now.
    pub at: Timestamp,
    /// Free for others after this.
    pub until: Timestamp,
    /// How many at most.
    pub limit: i64,
}

/// Messages that the caller is to send now.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The messages.
    pub deliveries: Vec<ClaimedDelivery>,
    /// When to ask again, if there will be something.
    pub next_at: Option<Timestamp>,
}

/// One message to send.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    /// The message.
    pub delivery: WebhookDelivery,
    /// Where and how.
    pub webhook: WebhookRecord,
}

/// How an attempt to send a message went, and what is next.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Which message.
    pub delivery: DeliveryId,
    /// Who held it.
    pub by: String,
    /// When the attempt ended.
    pub at: Timestamp,
    /// What is next.
    pub next: NextStep,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What becomes of a message after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It was taken.
    Done,
    /// It is sent again.
    RetryAt(Timestamp),
    /// It is given up.
    Dead,
}

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noun {
    /// An agent.
    Agent,
    /// An annotation.
    Annotation,
    /// A plan that an agent holds back.
    Approval,
    /// A message to a subscriber.
    Delivery,
    /// An event.
    Event,
    /// A generator.
    Generator,
    /// A label.
    Label,
    /// A registration of an agent with a generator.
    Registration,
    /// A revision of a stack.
    Revision,
    /// A stack.
    Stack,
    /// A target.
    Target,
    /// A subscription.
    Webhook,
}

impl Noun {
    /// As a code says it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Annotation => "annotation",
            Self::Approval => "approval",
            Self::Delivery => "webhook_delivery",
            Self::Event => "agent_event",
            Self::Generator => "generator",
            Self::Label => "label",
            Self::Registration => "registration",
            Self::Revision => "deployment_object",
            Self::Stack => "stack",
            Self::Target => "target",
            Self::Webhook => "webhook",
        }
    }
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delivery => "webhook delivery",
            Self::Event => "event",
            Self::Revision => "deployment object",
            Self::Agent
            | Self::Annotation
            | Self::Approval
            | Self::Generator
            | Self::Label
            | Self::Registration
            | Self::Stack
            | Self::Target
            | Self::Webhook => self.code(),
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
    /// It is no longer open to this decision.
    #[error("approval {approval} is {state}")]
    Decided {
        /// Which one.
        approval: ApprovalId,
        /// What became of it.
        state: ApprovalState,
    },
    /// Who asks may not change this.
    #[error("this belongs to someone else")]
    NotTheirs,
    /// The key was used before, for something that cannot be answered again.
    #[error("this Idempotency-Key was used before, for {0}")]
    KeyReused(String),
    /// The store is busy or away; nothing was changed by this call, as far as is known.
    #[error("the store does not answer")]
    Unavailable,
    /// The store itself failed. Whether the change is durable is not known.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// The result of a call to a store, later.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Told of each change that a store has committed for its own broker, before the call that made it returns.
pub type Watcher = Arc<dyn Fn(&[Change]) + Send + Sync>;
