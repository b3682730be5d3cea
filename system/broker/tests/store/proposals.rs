//! Proposals: texts for stacks that are not submitted, and the plans of agents for them.

use std::collections::BTreeSet;
use std::time::Duration;

use sindri_broker::{
    AuditFilter, BundleCipher, EncryptionKey, KeyHolder, NewProposal, PostgresStore, RecordKind, RetentionCutoffs,
    Store, StoreChange, StoreError, WriteContext,
};
use sindri_model::wire::{AgentStatus, CreatedProposal, PlanReport, UpdateAgentRequest};
use sindri_model::{AgentId, ProposalId, StackId};
use tokio::time::timeout;

use crate::support::{World, at, contracts, entropy, write_context, write_context_with_key};

contracts!(
    a_proposal_is_for_the_agents_of_its_stack_and_changes_no_target_state,
    the_first_plan_of_an_agent_stays,
    an_agent_that_lost_the_stack_and_a_deleted_stack_have_no_proposals,
    an_expired_proposal_does_not_exist_and_is_deleted,
    a_repeated_request_returns_the_same_proposal,
    proposals_that_wait_for_active_agents_are_limited_for_each_stack,
    plans_of_one_proposal_are_cut_at_their_limit,
    texts_and_plans_are_read_with_a_cipher,
);

const TEXT: &str = "a: proposed";

fn new_proposal(stack: StackId, yaml: &str) -> NewProposal {
    let id = ProposalId::generate(&entropy());
    NewProposal { id, stack, yaml_content: yaml.to_owned(), expires_at: at(600) }
}

fn planned(plan: &str) -> PlanReport {
    PlanReport { failed: false, changes: true, plan: plan.to_owned() }
}

async fn propose(world: &World, stack: StackId) -> CreatedProposal {
    world.store.create_proposal(write_context(), new_proposal(stack, TEXT)).await.unwrap()
}

async fn report(world: &World, agent: AgentId, id: ProposalId, plan: &str) -> Result<(), StoreError> {
    world.store.report_plan(write_context(), agent, id, planned(plan)).await
}

/// Returns the plans of a proposal by agent.
async fn plans(world: &World, proposal: &CreatedProposal) -> Vec<(AgentId, Option<PlanReport>)> {
    let read = world.store.get_proposal(proposal.stack_id, proposal.id, at(1)).await.unwrap();
    read.agents.into_iter().map(|(agent, report)| (agent.id, report)).collect()
}

async fn activate(world: &World, agent: AgentId) {
    let active = UpdateAgentRequest { status: Some(AgentStatus::Active), ..UpdateAgentRequest::default() };
    world.store.update_agent(write_context(), agent, active).await.unwrap();
}

fn assert_missing<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::NotFound { kind: RecordKind::Proposal, .. })), "{result:?}");
}

async fn a_proposal_is_for_the_agents_of_its_stack_and_changes_no_target_state(world: World) {
    let [one, two, other] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
    }
    world.submit(stack).await;
    let before = world.store.deliver_target_state(one).await.unwrap();
    let position = world.store.get_position().await.unwrap().latest;
    let created = propose(&world, stack).await;
    assert_eq!(created.agents.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&one, &two]));
    let after = world.store.deliver_target_state(one).await.unwrap();
    assert_eq!((after.version, after.recheck_version), (before.version, before.recheck_version));
    assert_eq!((before.proposals, after.proposals.is_some_and(|newest| newest > position)), (None, true));
    assert_eq!(world.store.get_target_state(other).await.unwrap().proposals, None);
    let since = world.store.list_changes_since(position).await.unwrap().changes;
    assert_eq!(since, created.agents.iter().map(|agent| StoreChange::Proposal(*agent)).collect::<Vec<_>>());
    let listed = world.store.list_proposals(one, at(1)).await.unwrap();
    assert_eq!(
        (listed[0].id, listed[0].yaml_content.as_str(), listed[0].stack_name.as_str()),
        (created.id, TEXT, "web")
    );
    assert_eq!(world.store.list_proposals(other, at(1)).await.unwrap(), []);
    let filter = AuditFilter { action: Some("proposal.*".to_owned()), ..AuditFilter::default() };
    assert_eq!(world.store.list_audit_log(filter).await.unwrap().1, 1);
}

async fn the_first_plan_of_an_agent_stays(world: World) {
    let [one, two] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(one, stack).await.unwrap();
    let created = propose(&world, stack).await;
    assert_eq!(plans(&world, &created).await, [(one, None)]);
    report(&world, one, created.id, "first").await.unwrap();
    report(&world, one, created.id, "second").await.unwrap();
    assert_eq!(plans(&world, &created).await, [(one, Some(planned("first")))]);
    assert_eq!(world.store.list_proposals(one, at(1)).await.unwrap(), []);
    assert_eq!(world.store.deliver_target_state(one).await.unwrap().proposals, None, "it is answered");
    assert_missing(report(&world, two, created.id, "of another agent").await);
    assert_missing(world.store.get_proposal(world.add_stack("other").await, created.id, at(1)).await);
}

async fn an_agent_that_lost_the_stack_and_a_deleted_stack_have_no_proposals(world: World) {
    let [one, two] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [one, two] {
        world.target(agent, stack).await.unwrap();
    }
    let created = propose(&world, stack).await;
    world.store.remove_target(write_context(), one, stack).await.unwrap();
    assert_eq!(world.store.list_proposals(one, at(1)).await.unwrap(), []);
    assert_eq!(plans(&world, &created).await, [(two, None)]);
    world.store.delete_stack(write_context(), stack).await.unwrap();
    assert_eq!(world.store.list_proposals(two, at(1)).await.unwrap(), []);
    let missing = world.store.create_proposal(write_context(), new_proposal(stack, TEXT)).await;
    assert!(matches!(missing, Err(StoreError::NotFound { kind: RecordKind::Stack, .. })), "{missing:?}");
}

async fn an_expired_proposal_does_not_exist_and_is_deleted(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let created = propose(&world, stack).await;
    assert!(world.store.get_proposal(stack, created.id, at(599)).await.is_ok());
    assert_missing(world.store.get_proposal(stack, created.id, at(600)).await);
    assert_eq!(world.store.list_proposals(agent, at(600)).await.unwrap(), []);
    let late = WriteContext { time: at(600), ..write_context() };
    assert_missing(world.store.report_plan(late, agent, created.id, planned("late")).await);
    let before = |second| RetentionCutoffs { expired_proposals: Some(at(second)), ..RetentionCutoffs::default() };
    assert_eq!(world.store.purge(before(599), 10).await.unwrap(), 0);
    assert_eq!(world.store.purge(before(600), 10).await.unwrap(), 1);
    assert_missing(world.store.get_proposal(stack, created.id, at(1)).await);
    assert_eq!(world.store.deliver_target_state(agent).await.unwrap().proposals, None);
}

async fn a_repeated_request_returns_the_same_proposal(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let create =
        async |yaml| world.store.create_proposal(write_context_with_key("key"), new_proposal(stack, yaml)).await;
    let first = create(TEXT).await.unwrap();
    assert_eq!(create(TEXT).await.unwrap(), first);
    assert_eq!(create("a: other").await, Err(StoreError::IdempotencyKeyMismatch));
    assert_eq!(world.store.list_proposals(agent, at(1)).await.unwrap().len(), 1);
}

async fn proposals_that_wait_for_active_agents_are_limited_for_each_stack(world: World) {
    let [one, two] = world.add_agents().await;
    let (stack, other) = (world.add_stack("web").await, world.add_stack("other").await);
    for (agent, stack) in [(one, stack), (two, stack), (one, other)] {
        world.target(agent, stack).await.unwrap();
    }
    for _ in 0..20 {
        propose(&world, stack).await;
    }
    activate(&world, one).await;
    let rejected = world.store.create_proposal(write_context(), new_proposal(stack, TEXT)).await;
    let Err(StoreError::TooManyProposals { reason, wait }) = rejected else { panic!("{rejected:?}") };
    assert!(reason.starts_with("20 proposals of this stack wait"), "{reason}");
    assert_eq!(wait, Duration::from_secs(600));
    propose(&world, other).await;
    // Answers make room; the other agent is inactive, and does not answer.
    loop {
        let waiting = world.store.list_proposals(one, at(1)).await.unwrap();
        if waiting.is_empty() {
            break;
        }
        for proposal in waiting {
            report(&world, one, proposal.id, "").await.unwrap();
        }
    }
    for _ in 0..8 {
        propose(&world, stack).await;
    }
    assert!(world.store.create_proposal(write_context(), new_proposal(stack, TEXT)).await.is_err());
    let later = WriteContext { time: at(601), ..write_context() };
    let expired = NewProposal { expires_at: at(1_200), ..new_proposal(stack, TEXT) };
    world.store.create_proposal(later, expired).await.unwrap();
}

async fn plans_of_one_proposal_are_cut_at_their_limit(world: World) {
    const AGENTS: usize = 80;
    let agents = world.add_agents::<AGENTS>().await;
    let stack = world.add_stack("web").await;
    for agent in agents {
        world.target(agent, stack).await.unwrap();
    }
    let created = propose(&world, stack).await;
    let plan = "0123456789abcde\n".repeat(4 * 1024);
    for agent in agents {
        report(&world, agent, created.id, &plan).await.unwrap();
    }
    let sizes: Vec<usize> =
        plans(&world, &created).await.iter().map(|(_, report)| report.as_ref().unwrap().plan.len()).collect();
    assert_eq!(sizes.iter().filter(|size| **size == plan.len()).count(), 64);
    assert!(sizes.iter().sum::<usize>() <= 4 * 1024 * 1024 + AGENTS * 100, "{sizes:?}");
}

fn cipher() -> BundleCipher {
    BundleCipher::new(EncryptionKey::parse(&"ab".repeat(32)).unwrap(), true)
}

async fn texts_and_plans_are_read_with_a_cipher(world: World) {
    world.store.set_bundle_cipher(cipher());
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let created = propose(&world, stack).await;
    assert_eq!(world.store.list_proposals(agent, at(1)).await.unwrap()[0].yaml_content, TEXT);
    report(&world, agent, created.id, "+ secret plan").await.unwrap();
    assert_eq!(plans(&world, &created).await, [(agent, Some(planned("+ secret plan")))]);
}

#[tokio::test]
async fn encrypted_texts_and_plans_are_not_in_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sindri.db").display().to_string();
    texts_and_plans_are_read_with_a_cipher(World::sqlite_at(&path)).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = "SELECT yaml_content || plan FROM proposals JOIN proposal_plans ON proposal_id = proposals.id";
    let stored: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert!(stored.len() > 50 && !stored.contains("proposed") && !stored.contains("secret plan"), "{stored}");
}

#[tokio::test]
async fn a_proposal_of_one_broker_notifies_another_at_once() {
    let Some(world) = World::postgres().await else { return };
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let other = PostgresStore::open(world.url.as_ref().unwrap(), 2).await.unwrap();
    other.await_remote_change().await.unwrap();
    let latest = other.get_position().await.unwrap().latest;
    let (notified, created) =
        tokio::join!(timeout(Duration::from_secs(3), other.await_remote_change()), propose(&world, stack));
    notified.expect("notified before the periodic check").unwrap();
    assert_eq!(other.list_changes_since(latest).await.unwrap().changes, [StoreChange::Proposal(agent)]);
    let context = WriteContext { actor: Some(KeyHolder::Agent(agent)), ..write_context() };
    other.report_plan(context, agent, created.id, planned("p")).await.unwrap();
    assert_eq!(plans(&world, &created).await, [(agent, Some(planned("p")))]);
}
