//! Approvals: requests of agents, and decisions.

use sindri_broker::{AuditFilter, Page, RecordKind, StoreError};
use sindri_model::wire::ApprovalState::{self, Approved, Pending, Rejected, Superseded};
use sindri_model::wire::ConditionStatus::{False, True};
use sindri_model::wire::{Approval, ApprovalRequest, EventStatus};
use sindri_model::{AgentId, GeneratorId, RevisionId, StackId};

use crate::status::report;
use crate::support::{ALL, World, admin_id, contracts, entropy, write_context};

contracts!(
    a_repeated_request_returns_the_same_approval_and_writes_nothing,
    another_plan_or_revision_supersedes_the_pending_plan,
    a_superseded_plan_is_pending_again_when_the_agent_requests_it_again,
    a_status_that_is_not_blocked_supersedes_the_pending_plan,
    a_decision_is_final_and_requests_a_new_pass,
    a_generator_cannot_see_approvals_of_another_generator,
    removing_the_stack_or_the_agent_supersedes_the_pending_plan,
);

/// An agent with a stack whose plans need an approval.
struct Fixture {
    world: World,
    agent: AgentId,
    stack: StackId,
    revision: RevisionId,
}

impl Fixture {
    async fn new(world: World) -> Self {
        let [agent] = world.add_agents().await;
        let stack = world.add_stack("web").await;
        world.target(agent, stack).await.unwrap();
        let revision = world.submit(stack).await.id;
        world.poll(agent).await;
        Self { world, agent, stack, revision }
    }

    async fn try_request(&self, revision: RevisionId, digit: &str) -> Result<Approval, StoreError> {
        let request = ApprovalRequest {
            deployment_object_id: revision,
            digest: digit.repeat(64),
            reasons: vec!["12 of 13 objects would go".to_owned()],
            plan: "- delete ConfigMap b/a".to_owned(),
        };
        self.world.store.request_approval(write_context(), self.agent, self.stack, request).await
    }

    async fn request(&self, digit: &str) -> Approval {
        self.try_request(self.revision, digit).await.unwrap()
    }

    async fn decide(&self, approval: &Approval, decision: ApprovalState) -> Result<Approval, StoreError> {
        self.world.store.decide_approval(write_context(), approval.id, None, decision).await
    }

    async fn state(&self, approval: &Approval) -> ApprovalState {
        self.world.store.get_approval(approval.id, None).await.unwrap().state
    }

    async fn entries(&self) -> i64 {
        self.world.store.list_audit_log(AuditFilter::default()).await.unwrap().1
    }
}

async fn a_repeated_request_returns_the_same_approval_and_writes_nothing(world: World) {
    let fixture = Fixture::new(world).await;
    let before = fixture.entries().await;
    let first = fixture.request("a").await;
    assert_eq!((first.state, first.decided_by.clone(), first.reasons.len()), (Pending, None, 1));
    assert_eq!(fixture.entries().await, before + 1);
    assert_eq!(fixture.request("a").await, first);
    assert_eq!(fixture.entries().await, before + 1);
    let approved = fixture.decide(&first, Approved).await.unwrap();
    let entries = fixture.entries().await;
    assert_eq!(fixture.request("a").await, approved);
    assert_eq!(fixture.entries().await, entries);
    let missing = fixture.try_request(RevisionId::generate(&entropy()), "a").await;
    assert!(matches!(missing, Err(StoreError::MissingReference { kind: RecordKind::Revision, .. })), "{missing:?}");
}

async fn another_plan_or_revision_supersedes_the_pending_plan(world: World) {
    let fixture = Fixture::new(world).await;
    let (first, second) = (fixture.request("a").await, fixture.request("b").await);
    assert_eq!((fixture.state(&first).await, fixture.state(&second).await), (Superseded, Pending));
    let next = fixture.world.submit(fixture.stack).await.id;
    let third = fixture.try_request(next, "b").await.unwrap();
    assert_ne!(third.id, second.id);
    assert_eq!((fixture.state(&second).await, fixture.state(&third).await), (Superseded, Pending));
    fixture.decide(&third, Rejected).await.unwrap();
    let fourth = fixture.try_request(next, "c").await.unwrap();
    assert_eq!((fixture.state(&third).await, fixture.state(&fourth).await), (Rejected, Pending), "a decision stays");
    let listed = fixture.world.store.list_approvals(None, None, ALL).await.unwrap();
    assert_eq!(listed.len(), 4);
    let pending = fixture.world.store.list_approvals(None, Some(Pending), ALL).await.unwrap();
    assert_eq!(pending, [fourth]);
    let page = Page { after: Some(listed[0].id.to_string()), limit: 2 };
    assert_eq!(fixture.world.store.list_approvals(None, None, page).await.unwrap(), listed[1..3]);
}

async fn a_superseded_plan_is_pending_again_when_the_agent_requests_it_again(world: World) {
    let fixture = Fixture::new(world).await;
    let (first, second) = (fixture.request("a").await, fixture.request("b").await);
    let again = fixture.request("a").await;
    assert_eq!(again, first, "the same row is pending");
    assert_eq!(fixture.state(&second).await, Superseded);
}

async fn a_status_that_is_not_blocked_supersedes_the_pending_plan(world: World) {
    let fixture = Fixture::new(world).await;
    let record = async |revision, reported: &[_]| {
        let reported = report(revision, reported);
        fixture.world.store.record_stack_status(write_context(), fixture.agent, fixture.stack, reported).await.unwrap();
    };
    let first = fixture.request("a").await;
    record(fixture.revision, &[("Blocked", True, "")]).await;
    assert_eq!(fixture.state(&first).await, Pending);
    record(fixture.revision, &[("Blocked", False, "")]).await;
    assert_eq!(fixture.state(&first).await, Superseded);
    fixture.request("a").await;
    record(fixture.revision, &[("Blocked", False, "")]).await;
    assert_eq!(fixture.state(&first).await, Superseded, "an unchanged status supersedes the plan too");
    let next = fixture.world.submit(fixture.stack).await.id;
    let second = fixture.try_request(next, "a").await.unwrap();
    record(fixture.revision, &[("Ready", True, "")]).await;
    assert_eq!(fixture.state(&second).await, Pending, "the status is about an older revision");
    record(next, &[("Ready", True, "")]).await;
    assert_eq!(fixture.state(&second).await, Superseded);
}

async fn a_decision_is_final_and_requests_a_new_pass(world: World) {
    let fixture = Fixture::new(world).await;
    let approval = fixture.request("a").await;
    let before = fixture.world.store.deliver_target_state(fixture.agent).await.unwrap();
    let approved = fixture.decide(&approval, Approved).await.unwrap();
    assert_eq!((approved.state, approved.decided_by.clone()), (Approved, Some(format!("admin {}", admin_id()))));
    assert_eq!(approved.decided_at, Some(crate::support::at(0)));
    let after = fixture.world.store.deliver_target_state(fixture.agent).await.unwrap();
    assert!(after.version > before.version && after.recheck_version > before.recheck_version);
    let entries = fixture.entries().await;
    assert_eq!(fixture.decide(&approval, Approved).await.unwrap(), approved);
    let rejected = fixture.decide(&approval, Rejected).await;
    assert_eq!(rejected, Err(StoreError::AlreadyDecided { approval: approval.id, state: Approved }));
    assert_eq!(fixture.entries().await, entries);
    assert_eq!(fixture.world.store.deliver_target_state(fixture.agent).await.unwrap().version, after.version);
    let (old, _) = (fixture.request("b").await, fixture.request("c").await);
    let rejected = fixture.decide(&old, Approved).await;
    assert_eq!(rejected, Err(StoreError::AlreadyDecided { approval: old.id, state: Superseded }));
}

async fn a_generator_cannot_see_approvals_of_another_generator(world: World) {
    let fixture = Fixture::new(world).await;
    let approval = fixture.request("a").await;
    let (store, other) = (&fixture.world.store, GeneratorId::generate(&entropy()));
    fixture.world.add_generator(other, "other").await;
    let own = Some(fixture.world.generator);
    assert_eq!(store.list_approvals(own, None, ALL).await.unwrap(), std::slice::from_ref(&approval));
    assert_eq!(store.list_approvals(Some(other), None, ALL).await.unwrap(), []);
    for rejected in [
        store.get_approval(approval.id, Some(other)).await,
        store.decide_approval(write_context(), approval.id, Some(other), Approved).await,
    ] {
        assert!(matches!(rejected, Err(StoreError::NotFound { kind: RecordKind::Approval, .. })), "{rejected:?}");
    }
    assert_eq!(store.decide_approval(write_context(), approval.id, own, Rejected).await.unwrap().state, Rejected);
}

async fn removing_the_stack_or_the_agent_supersedes_the_pending_plan(world: World) {
    let fixture = Fixture::new(world).await;
    fixture.world.store.remove_target(write_context(), fixture.agent, fixture.stack).await.unwrap();
    let removal = fixture.world.only_removal(fixture.agent).await;
    let approval = fixture.try_request(removal, "a").await.unwrap();
    fixture.world.report(fixture.agent, removal, EventStatus::Success).await.unwrap();
    assert_eq!(fixture.state(&approval).await, Superseded);
    let rejected = fixture.try_request(removal, "b").await;
    assert!(matches!(rejected, Err(StoreError::NotFound { kind: RecordKind::Stack, .. })), "{rejected:?}");
    fixture.world.target(fixture.agent, fixture.stack).await.unwrap();
    let approval = fixture.request("c").await;
    fixture.world.store.delete_agent(write_context(), fixture.agent).await.unwrap();
    assert_eq!(fixture.state(&approval).await, Superseded);
}
