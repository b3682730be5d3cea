//! Every verb of the store: its name, its arguments, its result, and the function in `sql/` that carries it out.

use jiff::Timestamp;
use sindri_model::wire::{
    Agent, AgentAnnotation, AgentEvent, AgentGeneratorRegistration, AgentLabel, AgentTarget, Approval, ApprovalRequest,
    ApprovalState, AuditLog, DeploymentHealth, DeploymentObject, Generator, HealthStatusUpdate, PakSummary, Stack,
    StackAnnotation, StackLabel, StackPolicy, StackStatusReport, UpdateAgentRequest, UpdateGeneratorRequest,
    UpdateStackRequest, WebhookDelivery, WebhookResponse,
};
use sindri_model::{
    AgentId, ApprovalId, DeliveryId, Epoch, EventId, GeneratorId, PakDigest, RevisionId, Sequence, StackId, WebhookId,
};

use super::records::{
    AuditFilter, Claim, Claimed, DeliveryFilter, DesiredSet, Era, FleetEntry, Heartbeat, KeyHolder, KeyRecord,
    NewRevision, News, Page, RevisionRecord, Settlement, StackReports, Stamp, Stored, Watcher, WebhookRecord, Whose,
};
use super::sql::assignments::labels;
use super::sql::assignments::policies;
use super::sql::assignments::target_state;
use super::sql::assignments::targets;
use super::sql::database::{Database, Sql, Weight};
use super::sql::fleet::agents;
use super::sql::fleet::generators;
use super::sql::fleet::offline;
use super::sql::fleet::overview as fleet;
use super::sql::reports::approvals;
use super::sql::reports::events;
use super::sql::reports::health;
use super::sql::reports::outcomes;
use super::sql::reports::status;
use super::sql::shared::audit;
use super::sql::shared::epoch;
use super::sql::stacks::lifecycle as stacks;
use super::sql::stacks::submissions::Submission;
use super::sql::tables::keys;
use super::sql::tables::revisions;
use super::sql::webhooks::deliveries;
use super::sql::webhooks::subscriptions as webhooks;

/// A change takes a stamp first; the weight tells a database how it may be carried out.
macro_rules! verbs {
    ($($(#[$doc:meta])* $weight:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $function:path;)*) => {
        /// What the broker must remember. Each implementation passes the same contract suite.
        pub trait Store: Send + Sync {
            /// From now on `watcher` is told of what this store commits for its own broker.
            fn attach(&self, watcher: Watcher);
            /// Whether others write to the same database.
            fn is_shared(&self) -> bool;
            /// Ends when somebody else may have committed something, or after a while.
            fn heard(&self) -> Stored<'_, ()>;
            /// Appends a revision and returns it with its sequence. Sequences never repeat or go back, and become
            /// visible in their order.
            fn append_revision(&self, stamp: Stamp, revision: NewRevision) -> Stored<'_, DeploymentObject>;
            $($(#[$doc])* fn $name(&self, $($arg: $type),*) -> Stored<'_, $result>;)*
        }

        impl<D: Database> Store for Sql<D> {
            fn attach(&self, watcher: Watcher) {
                self.0.attach(watcher);
            }

            fn is_shared(&self) -> bool {
                self.0.is_shared()
            }

            fn heard(&self) -> Stored<'_, ()> {
                self.0.heard()
            }

            fn append_revision(&self, stamp: Stamp, revision: NewRevision) -> Stored<'_, DeploymentObject> {
                self.0.submit(Submission { stamp, revision })
            }

            $(fn $name(&self, $($arg: $type),*) -> Stored<'_, $result> {
                self.0.transact(Weight::$weight, Box::new(move |session| Box::pin($function(session, $($arg),*))))
            })*
        }
    };
}

verbs! {
    /// Whether the store answers.
    Read ping() -> () = epoch::ping;
    /// Where the database is in its life.
    Read era() -> Era = epoch::era;
    /// Starts a new epoch above a given one: the database was restored from a backup. Does nothing if it is there.
    Write begin_epoch(stamp: Stamp, above: Epoch, why: String) -> Era = epoch::begin;
    /// Remembers where the database lives; says whether it lived elsewhere before.
    Write settle_origin(origin: String) -> bool = epoch::settle_origin;
    /// A secret of this database, made at its first start.
    Write secret(stamp: Stamp) -> Vec<u8> = epoch::secret;
    /// What changed after `latest`.
    Read news(latest: Sequence) -> News = epoch::news;

    /// Whether there is an administrator's key.
    Read has_admin() -> bool = keys::has_admin;
    /// Records the administrator's key, unless there is one; says whether it did.
    Write create_admin(stamp: Stamp, key: KeyRecord) -> bool = keys::create_admin;
    /// The keys with this short token, usually one or none.
    Read keys(short: String) -> Vec<(PakDigest, KeyHolder)> = keys::by_short;
    /// Every key, without anything secret.
    Read paks(page: Page) -> Vec<PakSummary> = keys::list;
    /// Replaces the key of an agent.
    Write rotate_agent_key(stamp: Stamp, agent: AgentId, key: KeyRecord) -> Agent = keys::rotate_of_agent;
    /// Replaces the key of a generator.
    Write rotate_generator_key(stamp: Stamp, generator: GeneratorId, key: KeyRecord) -> Generator
        = keys::rotate_of_generator;

    /// Records a new agent with its key and its first registrations.
    Write create_agent(stamp: Stamp, agent: Agent, key: KeyRecord, generators: Vec<GeneratorId>) -> () = agents::create;
    /// Every agent, by name.
    Read agents(page: Page) -> Vec<Agent> = agents::list;
    /// One agent.
    Read agent(agent: AgentId) -> Agent = agents::get;
    /// The agent of that name in that cluster.
    Read find_agent(name: String, cluster_name: String) -> Agent = agents::find;
    /// Changes what is given and leaves the rest.
    Write update_agent(stamp: Stamp, agent: AgentId, changes: UpdateAgentRequest) -> Agent = agents::update;
    /// Deletes an agent, its key, its targets and its registrations. What it owes stays on record.
    Write delete_agent(stamp: Stamp, agent: AgentId) -> () = agents::delete;
    /// Notes that agents live.
    Write record_heartbeats(beats: Vec<(AgentId, Heartbeat)>) -> () = agents::heartbeats;

    /// Notes which agents have sent no heartbeat since then, and tells subscribers, once until an agent is back. As many
    /// at most as the limit says; returns how many.
    Write note_offline(stamp: Stamp, silent_since: Timestamp, limit: i64) -> usize = offline::note;

    /// The labels of an agent.
    Read agent_labels(agent: AgentId, page: Page) -> Vec<AgentLabel> = labels::of_agent;
    /// Labels an agent.
    Write add_agent_label(stamp: Stamp, label: AgentLabel) -> AgentLabel = labels::add_to_agent;
    /// Takes a label from an agent.
    Write remove_agent_label(stamp: Stamp, agent: AgentId, label: String) -> () = labels::remove_from_agent;
    /// The annotations of an agent.
    Read agent_annotations(agent: AgentId, page: Page) -> Vec<AgentAnnotation> = labels::annotations_of_agent;
    /// Annotates an agent.
    Write add_agent_annotation(stamp: Stamp, annotation: AgentAnnotation) -> AgentAnnotation = labels::annotate_agent;
    /// Takes an annotation from an agent.
    Write remove_agent_annotation(stamp: Stamp, agent: AgentId, key: String) -> ()
        = labels::remove_annotation_from_agent;
    /// The labels of a stack that lives.
    Read stack_labels(stack: StackId, page: Page) -> Vec<StackLabel> = labels::of_stack;
    /// Labels a stack.
    Write add_stack_label(stamp: Stamp, label: StackLabel) -> StackLabel = labels::add_to_stack;
    /// Takes a label from a stack.
    Write remove_stack_label(stamp: Stamp, stack: StackId, label: String) -> () = labels::remove_from_stack;
    /// The annotations of a stack that lives.
    Read stack_annotations(stack: StackId, page: Page) -> Vec<StackAnnotation> = labels::annotations_of_stack;
    /// Annotates a stack.
    Write add_stack_annotation(stamp: Stamp, annotation: StackAnnotation) -> StackAnnotation = labels::annotate_stack;
    /// Takes an annotation from a stack.
    Write remove_stack_annotation(stamp: Stamp, stack: StackId, key: String) -> ()
        = labels::remove_annotation_from_stack;

    /// Records a new generator with its key.
    Write create_generator(stamp: Stamp, generator: Generator, key: KeyRecord) -> () = generators::create;
    /// Every generator, by name.
    Read generators(page: Page) -> Vec<Generator> = generators::list;
    /// One generator.
    Read generator(generator: GeneratorId) -> Generator = generators::get;
    /// Changes what is given and leaves the rest.
    Write update_generator(stamp: Stamp, generator: GeneratorId, changes: UpdateGeneratorRequest) -> Generator
        = generators::update;
    /// Deletes a generator, its key, its registrations and its stacks, each as if it were deleted alone.
    Write delete_generator(stamp: Stamp, generator: GeneratorId) -> () = generators::delete;
    /// Registers an agent with a generator.
    Write register(stamp: Stamp, generator: GeneratorId, agent: AgentId) -> AgentGeneratorRegistration
        = generators::register;
    /// Ends a registration: what the agent got by labels and annotations is taken away, explicit targets stay.
    Write unregister(stamp: Stamp, generator: GeneratorId, agent: AgentId) -> () = generators::unregister;
    /// The registrations of an agent.
    Read registrations_of_agent(agent: AgentId, page: Page) -> Vec<AgentGeneratorRegistration>
        = generators::registrations_of_agent;
    /// The registrations with a generator.
    Read registrations_with(generator: GeneratorId, page: Page) -> Vec<AgentGeneratorRegistration>
        = generators::registrations_with;

    /// Records a new stack.
    Write create_stack(stamp: Stamp, stack: Stack) -> Stack = stacks::create;
    /// The stacks that live, by name.
    Read stacks(whose: Whose, page: Page) -> Vec<Stack> = stacks::list;
    /// A stack that lives.
    Read stack(stack: StackId) -> Stack = stacks::get;
    /// Changes what is given and leaves the rest.
    Write update_stack(stamp: Stamp, stack: StackId, changes: UpdateStackRequest) -> Stack = stacks::update;
    /// Deletes a stack: its targets go, and one marker tells every agent that ever received it to remove it.
    Write delete_stack(stamp: Stamp, stack: StackId) -> () = stacks::delete;
    /// The stacks that are wanted of an agent.
    Read stacks_of_agent(agent: AgentId, page: Page) -> Vec<Stack> = stacks::of_agent;

    /// The revisions of a stack that lives, ascending; without what was meant for one agent only.
    Read revisions(stack: StackId, page: Page) -> Vec<DeploymentObject> = revisions::list;
    /// One revision or removal, of whatever stack.
    Read revision(revision: RevisionId) -> RevisionRecord = revisions::get;

    /// Targets a stack at an agent that is registered with the stack's generator.
    Write add_target(stamp: Stamp, target: AgentTarget) -> AgentTarget = targets::add;
    /// Takes a stack away from an agent, which is told to remove it if it has received it.
    Write remove_target(stamp: Stamp, agent: AgentId, stack: StackId) -> () = targets::remove;
    /// The explicit targets of an agent.
    Read targets(agent: AgentId, page: Page) -> Vec<AgentTarget> = targets::list;

    /// The full desired set of one agent: wanted stacks at their newest revision, and the removals that it has
    /// not confirmed, ascending. Never an increment: absence means nothing.
    Read desired_set(agent: AgentId) -> DesiredSet = target_state::desired_set;
    /// The same, for the agent itself: notes, durably, what it receives with it.
    Write hand_out(agent: AgentId) -> DesiredSet = target_state::hand_out;
    /// The version of an agent's desired set, without the set.
    Read version_of(agent: AgentId) -> Sequence = target_state::version_of;
    /// The annotations for agents of each stack in an agent's target state that has any.
    Read policies(agent: AgentId) -> Vec<StackPolicy> = policies::of_agent;
    /// What an agent last said about each thing in its target state.
    Read outcomes(agent: AgentId) -> Vec<AgentEvent> = outcomes::of_agent;
    /// Whether a stack is, or ever was, the agent's business.
    Read concerns(agent: AgentId, stack: StackId) -> bool = target_state::concerns;

    /// Records an outcome. With a key that this agent has used before, nothing is recorded and the first
    /// event returned. A success of a removal confirms it.
    Write record_event(stamp: Stamp, event: AgentEvent) -> AgentEvent = events::record;
    /// What an agent reported, oldest first.
    Read events_of_agent(agent: AgentId, page: Page) -> Vec<AgentEvent> = events::of_agent;
    /// The last things that an agent reported, newest first.
    Read recent_events(agent: AgentId, limit: i64) -> Vec<AgentEvent> = events::recent;
    /// What agents reported, oldest first.
    Read events(whose: Whose, page: Page) -> Vec<AgentEvent> = events::list;
    /// One event.
    Read event(event: EventId) -> AgentEvent = events::get;

    /// Notes what an agent says about the health of revisions.
    Write record_health(stamp: Stamp, agent: AgentId, update: HealthStatusUpdate) -> () = health::record;
    /// What agents say about a revision.
    Read health_of_revision(revision: RevisionId) -> Vec<DeploymentHealth> = health::of_revision;
    /// What agents say about the newest revision of a stack that each of them has spoken about.
    Read health_of_stack(stack: StackId) -> Vec<DeploymentHealth> = health::of_stack;

    /// Notes how a stack is on an agent's cluster, in place of what it said before. What it has said already, and what
    /// it says about an older revision than before or about a stack that it has removed, changes nothing.
    Write report_status(stamp: Stamp, agent: AgentId, stack: StackId, report: StackStatusReport) -> () = status::report;
    /// What agents say about a stack; of a deleted one only while some agent has to remove it.
    Read reports_of_stack(stack: StackId) -> StackReports = status::of_stack;

    /// An agent asks whether it may carry a plan out. Asking again changes nothing.
    Write propose(stamp: Stamp, agent: AgentId, stack: StackId, request: ApprovalRequest) -> Approval
        = approvals::propose;
    /// What agents hold or held back, oldest first; of the stacks of a generator, or of all.
    Read approvals(owner: Option<GeneratorId>, state: Option<ApprovalState>, page: Page) -> Vec<Approval>
        = approvals::list;
    /// One of them, if it is about a stack of this generator.
    Read approval(approval: ApprovalId, owner: Option<GeneratorId>) -> Approval = approvals::get;
    /// Approves or rejects what is pending, and makes its agent look again. The same decision again changes nothing.
    Write decide(stamp: Stamp, approval: ApprovalId, owner: Option<GeneratorId>, decision: ApprovalState) -> Approval
        = approvals::decide;

    /// How every agent is doing; deleted ones while they owe something.
    Read fleet(whose: Whose, page: Page) -> Vec<FleetEntry> = fleet::list;
    /// How one agent is doing.
    Read fleet_entry(agent: AgentId) -> FleetEntry = fleet::get;

    /// A part of the audit log, newest first, and how many entries match in all.
    Read audit_logs(filter: AuditFilter) -> (Vec<AuditLog>, i64) = audit::list;

    /// Records a subscription.
    Write create_webhook(stamp: Stamp, webhook: WebhookRecord) -> () = webhooks::create;
    /// Every subscription, by name.
    Read webhooks(page: Page) -> Vec<WebhookResponse> = webhooks::list;
    /// One subscription.
    Read webhook(webhook: WebhookId) -> WebhookRecord = webhooks::get;
    /// Replaces a subscription.
    Write replace_webhook(stamp: Stamp, webhook: WebhookRecord) -> () = webhooks::replace;
    /// Deletes a subscription and its messages.
    Write delete_webhook(stamp: Stamp, webhook: WebhookId) -> () = webhooks::delete;
    /// One sealed subscription, if there is any: to see whether the key opens it.
    Read sealed_sample() -> Option<WebhookRecord> = webhooks::sample;
    /// The messages of a subscription, newest first.
    Read deliveries(filter: DeliveryFilter) -> Vec<WebhookDelivery> = deliveries::list;
    /// Queues one message to one subscription, to see whether it arrives.
    Write test_webhook(stamp: Stamp, webhook: WebhookId) -> DeliveryId = deliveries::queue_test;
    /// Takes messages that are due and that the broker sends.
    Write claim_deliveries(claim: Claim) -> Claimed = deliveries::claim;
    /// Takes messages that are due and that this agent sends.
    Write claim_deliveries_of_agent(agent: AgentId, claim: Claim) -> Claimed = deliveries::claim_for_agent;
    /// One message that an agent has taken.
    Read claimed_delivery(agent: AgentId, delivery: DeliveryId) -> WebhookDelivery = deliveries::held_by_agent;
    /// Notes how an attempt went. Says whether the message was still the caller's.
    Write settle_delivery(settlement: Settlement) -> bool = deliveries::settle;
}
