//! Every operation of the store: its name, arguments and result, and the function in `sql/` that executes it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sindri_model::policy::Suspension;
use sindri_model::wire::{
    Admin, Agent, AgentAnnotation, AgentEvent, AgentGeneratorRegistration, AgentLabel, AgentProposal, AgentTarget,
    Approval, ApprovalRequest, ApprovalState, AuditLog, CreatedProposal, DeploymentHealthResponse, DeploymentObject,
    Generator, HealthStatusUpdate, NamedEvent, PakSummary, PlanReport, RevisionSummary, Stack, StackAnnotation,
    StackHealthResponse, StackLabel, StackPolicy, StackStatusReport, SuspensionChange, TargetVersion,
    UpdateAgentRequest, UpdateGeneratorRequest, UpdateStackRequest, WebhookDelivery, WebhookResponse,
};
use sindri_model::{
    AdminId, AgentId, ApprovalId, DeliveryId, Epoch, EventId, GeneratorId, PakDigest, ProposalId, RevisionId, Sequence,
    StackId, WebhookId,
};

use tokio::time::Instant;

use super::bundle_cipher::BundleCipher;
use super::records::{
    AcquireDeliveries, AcquiredDeliveries, AuditFilter, ChangeObserver, ChangeWebhook, ChangesSince, DatabaseUsage,
    DeliveryAttempt, DeliveryFilter, EventFilter, FailedLogin, FleetEntry, GeneratorUsage, Heartbeat, KeyHolder,
    KeyRecord, KeyRotation, ListScope, NewProposal, NewRevision, OverviewFilter, OverviewRecords, Page, ProposalRecord,
    RecordCounts, Reencrypt, RestoreEvidence, RetentionCutoffs, RewriteBundle, StackReports, StoreFigures, StoreFuture,
    StorePosition, StoredKey, StoredRevision, TargetState, WebhookRecord, WriteContext,
};
use super::sql::database::{Access, Database, SqlStore};
use super::sql::reports::events::EventReport;
use super::sql::stacks::submissions::Submission;
use super::sql::{assignments, figures, fleet, reports, retention, shared, stacks, tables, webhooks};

/// Function that records the duration of a call; true if it may write.
pub(crate) type RecordCall = Arc<dyn Fn(bool, Duration) + Send + Sync>;

/// A store whose calls are timed.
pub(crate) struct TimedStore {
    pub store: Arc<dyn Store>,
    pub record: RecordCall,
}

impl TimedStore {
    fn time<'a, T: Send + 'a>(&'a self, access: Access, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let start = Instant::now();
            let result = call.await;
            (self.record)(access != Access::Read, start.elapsed());
            result
        })
    }
}

/// Declares the trait and its implementation from one table of operations. Each line has the access that the
/// operation needs, its signature, and the function that executes it.
macro_rules! operations {
    ($($(#[$doc:meta])* $access:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $function:path;)*) => {
        /// The durable state of a broker. Each implementation passes the same contract tests.
        pub trait Store: Send + Sync {
            /// Sets the observer of the changes that this store commits for its own broker.
            fn set_observer(&self, observer: ChangeObserver);
            /// Sets the cipher of bundles. Without one they are stored in plain text.
            fn set_bundle_cipher(&self, cipher: BundleCipher);
            /// Returns true if other brokers write to the same database.
            fn is_shared(&self) -> bool;
            /// Returns the use of the database's resources.
            fn usage(&self) -> DatabaseUsage;
            /// Completes when another broker may have committed a change, and after a bounded time in any case.
            fn await_remote_change(&self) -> StoreFuture<'_, ()>;
            /// Completes when the database was replaced while the broker runs: by a failover that may have lost
            /// commits, or by a restore. Until [`Self::confirm_restore`] all other calls than
            /// [`Self::record_origin`] and [`Self::begin_epoch`] fail with [`StoreError::Unavailable`].
            fn await_restore(&self) -> StoreFuture<'_, RestoreEvidence>;
            /// Ends the state that [`Self::await_restore`] reports, after [`Self::record_origin`] has returned.
            fn confirm_restore(&self, evidence: &RestoreEvidence);
            /// Appends a revision and returns it with its sequence. Sequences never repeat or go back, and become
            /// visible in their order.
            fn append_revision(&self, context: WriteContext, revision: NewRevision)
                -> StoreFuture<'_, DeploymentObject>;
            /// Records an event. If the agent has used its idempotency key before, nothing is recorded and the first
            /// event is returned. The success of a removal confirms it.
            fn record_event(&self, context: WriteContext, event: AgentEvent) -> StoreFuture<'_, AgentEvent>;
            $($(#[$doc])* fn $name(&self, $($arg: $type),*) -> StoreFuture<'_, $result>;)*
        }

        impl<D: Database> Store for SqlStore<D> {
            fn set_observer(&self, observer: ChangeObserver) {
                self.0.set_observer(observer);
            }

            fn set_bundle_cipher(&self, cipher: BundleCipher) {
                self.0.set_bundle_cipher(cipher);
            }

            fn is_shared(&self) -> bool {
                self.0.is_shared()
            }

            fn usage(&self) -> DatabaseUsage {
                self.0.usage()
            }

            fn await_remote_change(&self) -> StoreFuture<'_, ()> {
                self.0.await_remote_change()
            }

            fn await_restore(&self) -> StoreFuture<'_, RestoreEvidence> {
                self.0.await_restore()
            }

            fn confirm_restore(&self, evidence: &RestoreEvidence) {
                self.0.confirm_restore(evidence);
            }

            fn append_revision(
                &self,
                context: WriteContext,
                revision: NewRevision,
            ) -> StoreFuture<'_, DeploymentObject> {
                self.0.submit(Submission { context, revision })
            }

            fn record_event(&self, context: WriteContext, event: AgentEvent) -> StoreFuture<'_, AgentEvent> {
                self.0.record_event(EventReport { context, event })
            }

            $(fn $name(&self, $($arg: $type),*) -> StoreFuture<'_, $result> {
                self.0.transact(Access::$access, Box::new(move |session| Box::pin($function(session, $($arg),*))))
            })*
        }

        impl Store for TimedStore {
            fn set_observer(&self, observer: ChangeObserver) {
                self.store.set_observer(observer);
            }

            fn set_bundle_cipher(&self, cipher: BundleCipher) {
                self.store.set_bundle_cipher(cipher);
            }

            fn is_shared(&self) -> bool {
                self.store.is_shared()
            }

            fn usage(&self) -> DatabaseUsage {
                self.store.usage()
            }

            fn await_remote_change(&self) -> StoreFuture<'_, ()> {
                self.store.await_remote_change()
            }

            fn await_restore(&self) -> StoreFuture<'_, RestoreEvidence> {
                self.store.await_restore()
            }

            fn confirm_restore(&self, evidence: &RestoreEvidence) {
                self.store.confirm_restore(evidence);
            }

            fn append_revision(
                &self,
                context: WriteContext,
                revision: NewRevision,
            ) -> StoreFuture<'_, DeploymentObject> {
                self.time(Access::Write, self.store.append_revision(context, revision))
            }

            fn record_event(&self, context: WriteContext, event: AgentEvent) -> StoreFuture<'_, AgentEvent> {
                self.time(Access::Write, self.store.record_event(context, event))
            }

            $(fn $name(&self, $($arg: $type),*) -> StoreFuture<'_, $result> {
                self.time(Access::$access, self.store.$name($($arg),*))
            })*
        }
    };
}

operations! {
    /// Checks that the database accepts changes: that it responds, has space, and that nothing holds the counter.
    Write check_writable() -> () = shared::counter::check_writable;
    /// Returns the epoch and the last number of the counter.
    Read get_position() -> StorePosition = shared::epoch::position;
    /// Starts a new epoch above a given one, because the database was restored from a backup. Does nothing if the
    /// current epoch is higher already.
    Recover begin_epoch(context: WriteContext, above: Epoch, reason: String) -> StorePosition = shared::epoch::begin;
    /// Records the server on which the database is. Begins a new epoch, and returns its position, if it was another
    /// server before, or if the counter is below a number that was committed.
    Recover record_origin(context: WriteContext, evidence: RestoreEvidence) -> Option<StorePosition>
        = shared::epoch::record_origin;
    /// Returns the secret of this database, which is created at its first start.
    Write get_or_create_secret(context: WriteContext) -> Vec<u8> = shared::epoch::get_or_create_secret;
    /// Returns the changes after a position of the counter.
    Read list_changes_since(latest: Sequence) -> ChangesSince = shared::changes::list_since;

    /// Returns true if the administrator has a key.
    Read has_admin_key() -> bool = tables::keys::has_admin;
    /// Creates the first administrator with its key, unless there is one already; returns true if it did.
    Write create_admin_key(context: WriteContext, key: KeyRecord) -> bool = fleet::admins::create_first;
    /// Creates an administrator with its key.
    Write create_admin(context: WriteContext, admin: Admin, key: KeyRecord) -> () = fleet::admins::create;
    /// Lists every administrator, by name.
    Read list_admins(page: Page) -> Vec<Admin> = tables::admins::list;
    /// Records a person who logs in with a token of a provider, unless there is a record. Returns false if the record was
    /// deleted, or if another administrator has the name.
    Write record_person(context: WriteContext, person: Admin) -> bool = fleet::admins::record_person;
    /// Returns one administrator.
    Read get_admin(admin: AdminId) -> Admin = tables::admins::get;
    /// Deletes an administrator and its key. Fails with [`StoreError::LastAdmin`] if no other one could administrate the
    /// broker.
    Write delete_admin(context: WriteContext, admin: AdminId) -> () = fleet::admins::delete;
    /// Returns the keys with this short token, usually one or none.
    Read find_keys(short: String) -> Vec<StoredKey> = tables::keys::find_by_short;
    /// Lists the short tokens of keys, which are not secret, at most `limit`.
    Read list_key_shorts(limit: i64) -> Vec<String> = tables::keys::list_shorts;
    /// Lists every key, without secrets.
    Read list_keys(page: Page) -> Vec<PakSummary> = tables::keys::list;
    /// Lists the digests of the current keys of a holder: usually one.
    Read list_keys_of_holder(holder: KeyHolder) -> Vec<PakDigest> = tables::keys::list_of_holder;
    /// Replaces the key of an administrator. Fails with [`StoreError::KeyChanged`] if it is no longer the expected one,
    /// and with [`StoreError::LastAdmin`] if no key that does not expire would be left.
    Write rotate_admin_key(context: WriteContext, admin: AdminId, rotation: KeyRotation) -> Admin
        = fleet::keys::rotate_for_admin;
    /// Replaces the key of an agent. Fails with [`StoreError::KeyChanged`] if it is no longer the expected one.
    Write rotate_agent_key(context: WriteContext, agent: AgentId, rotation: KeyRotation) -> Agent
        = fleet::keys::rotate_for_agent;
    /// Replaces the key of a generator. Fails with [`StoreError::KeyChanged`] if it is no longer the expected one.
    Write rotate_generator_key(context: WriteContext, generator: GeneratorId, rotation: KeyRotation) -> Generator
        = fleet::keys::rotate_for_generator;
    /// Writes failed logins to the audit log.
    Write record_failed_logins(context: WriteContext, logins: Vec<FailedLogin>) -> ()
        = shared::audit::record_failed_logins;

    /// Creates an agent with its key and its first registrations.
    Write create_agent(context: WriteContext, agent: Agent, key: KeyRecord, generators: Vec<GeneratorId>) -> ()
        = fleet::agents::create;
    /// Lists every agent, by name.
    Read list_agents(page: Page) -> Vec<Agent> = tables::agents::list;
    /// Returns one agent.
    Read get_agent(agent: AgentId) -> Agent = tables::agents::get;
    /// Returns the agent with this name in this cluster.
    Read find_agent(name: String, cluster_name: String) -> Agent = tables::agents::find;
    /// Changes the fields that are set.
    Write update_agent(context: WriteContext, agent: AgentId, changes: UpdateAgentRequest) -> Agent
        = fleet::agents::update;
    /// Deletes an agent, its key, its targets and its registrations. Its unconfirmed removals stay on record.
    Write delete_agent(context: WriteContext, agent: AgentId) -> () = fleet::agents::delete;
    /// Records the process of an agent that is its leader. When it returns, every event of the leader before is visible,
    /// and later ones are rejected.
    Write set_leader(agent: AgentId, process: String) -> () = fleet::agents::set_leader;
    /// Records heartbeats.
    Write record_heartbeats(heartbeats: Vec<(AgentId, Heartbeat)>) -> () = fleet::heartbeats::record;
    /// Marks agents offline that have sent no heartbeat since a time, and queues a webhook message about each. An agent
    /// is marked once until its next heartbeat. Marks at most `limit` agents, and returns their number.
    Write mark_agents_offline(context: WriteContext, silent_since: Timestamp, limit: i64) -> usize
        = fleet::heartbeats::mark_offline;

    /// Lists the labels of an agent.
    Read list_agent_labels(agent: AgentId, page: Page) -> Vec<AgentLabel> = assignments::labels::list_of_agent;
    /// Adds a label to an agent.
    Write add_agent_label(context: WriteContext, label: AgentLabel) -> AgentLabel = assignments::labels::add_to_agent;
    /// Removes a label from an agent.
    Write remove_agent_label(context: WriteContext, agent: AgentId, label: String) -> ()
        = assignments::labels::remove_from_agent;
    /// Lists the annotations of an agent.
    Read list_agent_annotations(agent: AgentId, page: Page) -> Vec<AgentAnnotation>
        = assignments::labels::list_annotations_of_agent;
    /// Adds an annotation to an agent.
    Write add_agent_annotation(context: WriteContext, annotation: AgentAnnotation) -> AgentAnnotation
        = assignments::labels::annotate_agent;
    /// Adds an annotation to an agent, or replaces its value.
    Write set_agent_annotation(context: WriteContext, annotation: AgentAnnotation) -> AgentAnnotation
        = assignments::labels::set_annotation_of_agent;
    /// Removes an annotation from an agent.
    Write remove_agent_annotation(context: WriteContext, agent: AgentId, key: String) -> ()
        = assignments::labels::remove_annotation_from_agent;
    /// Lists the labels of a stack.
    Read list_stack_labels(stack: StackId, page: Page) -> Vec<StackLabel> = assignments::labels::list_of_stack;
    /// Adds a label to a stack.
    Write add_stack_label(context: WriteContext, label: StackLabel) -> StackLabel = assignments::labels::add_to_stack;
    /// Removes a label from a stack.
    Write remove_stack_label(context: WriteContext, stack: StackId, label: String) -> ()
        = assignments::labels::remove_from_stack;
    /// Lists the annotations of a stack.
    Read list_stack_annotations(stack: StackId, page: Page) -> Vec<StackAnnotation>
        = assignments::labels::list_annotations_of_stack;
    /// Adds an annotation to a stack.
    Write add_stack_annotation(context: WriteContext, annotation: StackAnnotation) -> StackAnnotation
        = assignments::labels::annotate_stack;
    /// Adds an annotation to a stack, or replaces its value.
    Write set_stack_annotation(context: WriteContext, annotation: StackAnnotation) -> StackAnnotation
        = assignments::labels::set_annotation_of_stack;
    /// Changes the clusters on which a stack is suspended, and returns all of them. No other change comes between.
    Write change_suspension(context: WriteContext, stack: StackId, change: SuspensionChange) -> Suspension
        = assignments::suspension::change;
    /// Removes an annotation from a stack.
    Write remove_stack_annotation(context: WriteContext, stack: StackId, key: String) -> ()
        = assignments::labels::remove_annotation_from_stack;

    /// Creates a generator with its key.
    Write create_generator(context: WriteContext, generator: Generator, key: KeyRecord) -> ()
        = fleet::generators::create;
    /// Lists every generator, by name.
    Read list_generators(page: Page) -> Vec<Generator> = tables::generators::list;
    /// Returns one generator.
    Read get_generator(generator: GeneratorId) -> Generator = tables::generators::get;
    /// Returns what a generator has in the store.
    Read get_generator_usage(generator: GeneratorId) -> GeneratorUsage = tables::generators::get_usage;
    /// Changes the fields that are set.
    Write update_generator(context: WriteContext, generator: GeneratorId, changes: UpdateGeneratorRequest) -> Generator
        = fleet::generators::update;
    /// Deletes a generator, its key, its registrations and its stacks, each as if it were deleted alone.
    Write delete_generator(context: WriteContext, generator: GeneratorId) -> () = fleet::generators::delete;
    /// Registers an agent with a generator.
    Write register_agent(context: WriteContext, generator: GeneratorId, agent: AgentId) -> AgentGeneratorRegistration
        = fleet::registrations::register;
    /// Ends a registration. Stacks that the agent has because of labels and annotations are taken from it; explicit
    /// targets stay.
    Write unregister_agent(context: WriteContext, generator: GeneratorId, agent: AgentId) -> ()
        = fleet::registrations::unregister;
    /// Lists the registrations of an agent.
    Read list_registrations_of_agent(agent: AgentId, page: Page) -> Vec<AgentGeneratorRegistration>
        = tables::registrations::list_of_agent;
    /// Lists the registrations with a generator.
    Read list_registrations_of_generator(generator: GeneratorId, page: Page) -> Vec<AgentGeneratorRegistration>
        = tables::registrations::list_of_generator;

    /// Creates a stack.
    Write create_stack(context: WriteContext, stack: Stack) -> Stack = stacks::lifecycle::create;
    /// Lists the stacks that are not deleted, by name.
    Read list_stacks(scope: ListScope, page: Page) -> Vec<Stack> = tables::stacks::list;
    /// Returns a stack that is not deleted.
    Read get_stack(stack: StackId) -> Stack = tables::stacks::get;
    /// Changes the fields that are set.
    Write update_stack(context: WriteContext, stack: StackId, changes: UpdateStackRequest) -> Stack
        = stacks::lifecycle::update;
    /// Deletes a stack and its targets. One deletion marker instructs every agent that ever received the stack to
    /// remove it.
    Write delete_stack(context: WriteContext, stack: StackId) -> () = stacks::lifecycle::delete;
    /// Lists the stacks that an agent should have.
    Read list_stacks_of_agent(agent: AgentId, page: Page) -> Vec<Stack> = tables::stacks::list_of_agent;

    /// Lists the revisions of a stack that is not deleted, ascending, without removals for a single agent.
    Read list_revisions(stack: StackId, page: Page) -> Vec<DeploymentObject> = tables::revisions::list;
    /// Lists the revisions like [`Self::list_revisions`], with an empty text in place of each bundle.
    Read list_revisions_without_content(stack: StackId, page: Page) -> Vec<DeploymentObject>
        = tables::revisions::list_without_content;
    /// Returns one revision or removal of any stack, deleted ones included.
    Read get_revision(revision: RevisionId) -> StoredRevision = tables::revisions::get;

    /// Targets a stack at an agent that is registered with the stack's generator.
    Write add_target(context: WriteContext, target: AgentTarget) -> AgentTarget = assignments::targets::add;
    /// Takes a stack from an agent. An agent that has received the stack gets a removal.
    Write remove_target(context: WriteContext, agent: AgentId, stack: StackId) -> () = assignments::targets::remove;
    /// Lists the explicit targets of an agent.
    Read list_targets(agent: AgentId, page: Page) -> Vec<AgentTarget> = assignments::targets::list;

    /// Returns the full target state of an agent: its stacks at their newest revisions, and the removals that it has
    /// not confirmed, ascending. It is never an increment: the absence of a stack means nothing.
    Read get_target_state(agent: AgentId) -> TargetState = assignments::target_state::get;
    /// Returns the target state to the agent itself, after recording durably which stacks the agent receives with it.
    Write deliver_target_state(agent: AgentId) -> TargetState = assignments::target_state::deliver;
    /// Returns the target state like [`Self::get_target_state`], with a page of what the agent has not applied.
    Read get_unapplied(agent: AgentId, page: Page) -> TargetState = assignments::target_state::get_unapplied;
    /// Returns the target state like [`Self::deliver_target_state`], with a page of what the agent has not applied.
    Write deliver_unapplied(agent: AgentId, page: Page) -> TargetState = assignments::target_state::deliver_unapplied;
    /// Returns the version of an agent's target state.
    Read get_target_version(agent: AgentId) -> Sequence = assignments::target_state::get_version;
    /// Lists the policy annotations of each stack in an agent's target state that has any, with the version of that state.
    Read list_policies(agent: AgentId, page: Page) -> (TargetVersion, Vec<StackPolicy>) = assignments::policies::list_of_agent;
    /// Returns true if a stack is, or once was, assigned to the agent.
    Read is_assigned(agent: AgentId, stack: StackId) -> bool = assignments::assigned::is_assigned;

    /// Lists the events about a stack in their order: those of one agent, or of all.
    Read list_events_of_stack(stack: StackId, agent: Option<AgentId>, page: Page) -> Vec<AgentEvent>
        = reports::events::list_of_stack;
    /// Lists the events of an agent, oldest first.
    Read list_events_of_agent(agent: AgentId, page: Page) -> Vec<AgentEvent> = reports::events::list_of_agent;
    /// Lists the last events of an agent, newest first.
    Read list_recent_events(agent: AgentId, limit: i64) -> Vec<AgentEvent> = reports::events::list_recent;
    /// Lists events, oldest first.
    Read list_events(scope: ListScope, page: Page) -> Vec<AgentEvent> = reports::events::list;
    /// Returns one event.
    Read get_event(event: EventId) -> AgentEvent = reports::events::get;
    /// Lists events with the names of what they are about, oldest first.
    Read list_named_events(filter: EventFilter, page: Page) -> Vec<NamedEvent> = reports::named_events::list;
    /// Lists the last event of an agent about each revision and removal of its target state, oldest first.
    Read list_outcomes(agent: AgentId, page: Page) -> Vec<AgentEvent> = reports::outcomes::list_of_agent;

    /// Records the health of revisions as an agent reports it.
    Write record_health(context: WriteContext, agent: AgentId, update: HealthStatusUpdate) -> ()
        = reports::health::record;
    /// Returns the health of a revision: over all clusters, and a page of the reports.
    Read get_health_of_revision(revision: RevisionId, page: Page) -> DeploymentHealthResponse
        = reports::health::read_revision;
    /// Returns the health of a stack: over all clusters, and a page of the revisions that agents have last reported about.
    Read get_health_of_stack(stack: StackId, page: Page) -> StackHealthResponse = reports::health::read_stack;

    /// Records the status of a stack on an agent's cluster, in place of the previous one. A repeated report, one about
    /// an older revision, and one about a stack that the agent has removed change nothing.
    Write record_stack_status(context: WriteContext, agent: AgentId, stack: StackId, report: StackStatusReport) -> ()
        = reports::status::record;
    /// Returns the last report of an agent about a stack.
    Read get_stack_report(agent: AgentId, stack: StackId) -> StackStatusReport = reports::status::get_of_agent;
    /// Returns the reports of all agents about a stack, and a page of the statuses in them; about a deleted stack only while an
    /// agent has to remove it.
    Read get_stack_reports(stack: StackId, page: Page) -> StackReports = reports::status::get_of_stack;

    /// Returns stacks, agents, and the assignments of the stacks. A deleted stack is there until every agent has confirmed its
    /// removal.
    Read read_overview(filter: OverviewFilter) -> OverviewRecords = reports::overview::read;
    /// Lists the revisions of a stack with their numbers, newest first.
    Read list_history(stack: StackId, page: Page) -> Vec<RevisionSummary> = reports::history::list;

    /// Records the request of an agent for the approval of a plan. A repeated request changes nothing.
    Write request_approval(context: WriteContext, agent: AgentId, stack: StackId, request: ApprovalRequest) -> Approval
        = reports::approvals::request;
    /// Lists approvals, oldest first: of the stacks of a generator, or of all stacks.
    Read list_approvals(owner: Option<GeneratorId>, state: Option<ApprovalState>, page: Page) -> Vec<Approval>
        = reports::approvals::list;
    /// Returns an approval, if its stack belongs to the given generator.
    Read get_approval(approval: ApprovalId, owner: Option<GeneratorId>) -> Approval = reports::approvals::get;
    /// Approves or rejects a pending plan, and makes the agent run a new pass. The same decision again changes nothing.
    Write decide_approval(
        context: WriteContext, approval: ApprovalId, owner: Option<GeneratorId>, decision: ApprovalState
    ) -> Approval = reports::approvals::decide;

    /// Stores a proposal for the agents that should have the stack. Fails with [`StoreError::TooManyProposals`] if there is no
    /// room for it.
    Write create_proposal(context: WriteContext, proposal: NewProposal) -> CreatedProposal = reports::proposals::create;
    /// Returns a proposal of a stack that has not expired, with the plans for it.
    Read get_proposal(stack: StackId, proposal: ProposalId, now: Timestamp) -> ProposalRecord
        = reports::proposals::get;
    /// Lists the oldest proposals that an agent has not answered and that have not expired.
    Read list_proposals(agent: AgentId, now: Timestamp) -> Vec<AgentProposal> = reports::proposals::list_waiting;
    /// Records the plan of an agent for a proposal. A repeated report changes nothing.
    Write report_plan(context: WriteContext, agent: AgentId, proposal: ProposalId, report: PlanReport) -> ()
        = reports::proposals::report;

    /// Counts agents, stacks and revisions.
    Read count_records() -> RecordCounts = figures::count_records;
    /// Lists the state of every agent, including deleted ones with unconfirmed removals.
    Read list_fleet(scope: ListScope, page: Page) -> Vec<FleetEntry> = fleet::overview::list;
    /// Returns the state of one agent.
    Read get_fleet_entry(agent: AgentId) -> FleetEntry = fleet::overview::get;

    /// Counts records for metrics.
    Read get_figures() -> StoreFigures = figures::read_all;

    /// Deletes records that are older than the cutoffs and that no target state needs, at most `limit` of each kind.
    /// Returns the number of deleted records; if it is 0, there are no more.
    Write purge(cutoffs: RetentionCutoffs, limit: i64) -> u64 = retention::purge;

    /// Lists entries of the audit log, newest first, with the number of all matching entries, counted up to 10,000.
    Read list_audit_log(filter: AuditFilter) -> (Vec<AuditLog>, i64) = shared::audit::list;

    /// Passes the stored texts of at most `limit` bundles after a sequence to a function, and stores what it returns. It takes fewer
    /// bundles if these are large.
    /// Returns the last of these sequences; `None` if there are no more. If the function fails, nothing is changed.
    Write rewrite_bundles(after: Sequence, limit: i64, rewrite: RewriteBundle) -> Option<Sequence>
        = tables::revisions::rewrite;
    /// Returns the newest revision with a bundle, and the stored text of it, to check that the key decrypts it.
    Read get_encrypted_bundle() -> Option<(RevisionId, String)> = tables::revisions::get_newest_encrypted;

    /// Creates a webhook subscription.
    Write create_webhook(context: WriteContext, webhook: WebhookRecord) -> () = webhooks::subscriptions::create;
    /// Lists every subscription, by name.
    Read list_webhooks(page: Page) -> Vec<WebhookResponse> = webhooks::subscriptions::list;
    /// Returns one subscription.
    Read get_webhook(webhook: WebhookId) -> WebhookRecord = webhooks::subscriptions::get;
    /// Passes a subscription to a function, stores it, and returns it. No other change comes between.
    Write update_webhook(context: WriteContext, webhook: WebhookId, change: ChangeWebhook) -> WebhookResponse
        = webhooks::subscriptions::update;
    /// Deletes a subscription and its messages.
    Write delete_webhook(context: WriteContext, webhook: WebhookId) -> () = webhooks::subscriptions::delete;
    /// Returns any one subscription, to check that the encryption key decrypts it.
    Read get_any_webhook() -> Option<WebhookRecord> = webhooks::subscriptions::get_any;
    /// Replaces the confidential parts of every subscription by what the function returns, and returns their number.
    /// If the function fails for one of them, nothing is changed.
    Write reencrypt_webhooks(context: WriteContext, reencrypt: Reencrypt) -> usize
        = webhooks::subscriptions::reencrypt_all;
    /// Lists the messages of a subscription, newest first.
    Read list_deliveries(filter: DeliveryFilter) -> Vec<WebhookDelivery> = webhooks::deliveries::list;
    /// Queues a test message to one subscription.
    Write queue_test_delivery(context: WriteContext, webhook: WebhookId) -> DeliveryId
        = webhooks::deliveries::queue_test;
    /// Acquires messages that are due and that the broker sends.
    Write acquire_deliveries(request: AcquireDeliveries) -> AcquiredDeliveries = webhooks::deliveries::acquire;
    /// Acquires messages that are due and that this agent sends.
    Write acquire_deliveries_for_agent(agent: AgentId, request: AcquireDeliveries) -> AcquiredDeliveries
        = webhooks::deliveries::acquire_for_agent;
    /// Returns a message that an agent has acquired.
    Read get_acquired_delivery(agent: AgentId, delivery: DeliveryId) -> WebhookDelivery
        = webhooks::deliveries::get_acquired;
    /// Records an attempt to send a message. Returns false, and records nothing, if the sender had lost the message.
    Write record_delivery_attempt(attempt: DeliveryAttempt) -> bool = webhooks::deliveries::record_attempt;
}
