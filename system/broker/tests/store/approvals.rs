//! What agents hold back, and what somebody decides about it.

use sindri_broker::{AuditFilter, Noun, Page, StoreError};
use sindri_model::wire::ApprovalState::{self, Approved, Pending, Rejected, Superseded};
use sindri_model::wire::ConditionStatus::{False, True};
use sindri_model::wire::{Approval, ApprovalRequest, EventStatus};
use sindri_model::{AgentId, GeneratorId, RevisionId, StackId};

use crate::status::report;
use crate::support::{ALL, World, contracts, entropy, stamp};

contracts!(
    asking_again_returns_the_same_and_writes_nothing,
    another_plan_or_revision_supersedes_the_one_that_waits,
    a_plan_that_was_superseded_waits_again_when_the_agent_comes_back_to_it,
    what_is_no_longer_blocked_no_longer_waits,
    a_decision_is_made_once_and_makes_the_agent_look,
    what_belongs_to_another_generator_does_not_exist,
    what_is_gone_waits_for_nobody,
);

struct Held {
    world: World,
    agent: AgentId,
    stack: StackId,
    revision: RevisionId,
}

impl Held {
    async fn new(world: World) -> Self {
        let [agent] = world.with_agents().await;
        let stack = world.add_stack("web").await;
        world.target(agent, stack).await.unwrap();
        let revision = world.submit(stack).await.id;
        world.poll(agent).await;
        Self { world, agent, stack, revision }
    }

    async fn try_ask(&self, revision: RevisionId, digit: &str) -> Result<Approval, StoreError> {
        let request = ApprovalRequest {
            deployment_object_id: revision,
            digest: digit.repeat(64),
            reasons: vec!["12 of 13 objects would go".to_owned()],
            plan: "- delete ConfigMap b/a".to_owned(),
        };
        self.world.store.propose(stamp(), self.agent, self.stack, request).await
    }

    async fn ask(&self, digit: &str) -> Approval {
        self.try_ask(self.revision, digit).await.unwrap()
    }

    async fn decide(&self, approval: &Approval, decision: ApprovalState) -> Result<Approval, StoreError> {
        self.world.store.decide(stamp(), approval.id, None, decision).await
    }

    async fn state(&self, approval: &Approval) -> ApprovalState {
        self.world.store.approval(approval.id, None).await.unwrap().state
    }

    async fn entries(&self) -> i64 {
        self.world.store.audit_logs(AuditFilter::default()).await.unwrap().1
    }
}

async fn asking_again_returns_the_same_and_writes_nothing(world: World) {
    let held = Held::new(world).await;
    let before = held.entries().await;
    let first = held.ask("a").await;
    assert_eq!((first.state, first.decided_by.clone(), first.reasons.len()), (Pending, None, 1));
    assert_eq!(held.entries().await, before + 1);
    assert_eq!(held.ask("a").await, first);
    assert_eq!(held.entries().await, before + 1);
    let approved = held.decide(&first, Approved).await.unwrap();
    let entries = held.entries().await;
    assert_eq!(held.ask("a").await, approved);
    assert_eq!(held.entries().await, entries);
    let missing = held.try_ask(RevisionId::mint(&entropy()), "a").await;
    assert!(matches!(missing, Err(StoreError::MissingReference { noun: Noun::Revision, .. })), "{missing:?}");
}

async fn another_plan_or_revision_supersedes_the_one_that_waits(world: World) {
    let held = Held::new(world).await;
    let (first, second) = (held.ask("a").await, held.ask("b").await);
    assert_eq!((held.state(&first).await, held.state(&second).await), (Superseded, Pending));
    let next = held.world.submit(held.stack).await.id;
    let third = held.try_ask(next, "b").await.unwrap();
    assert_ne!(third.id, second.id);
    assert_eq!((held.state(&second).await, held.state(&third).await), (Superseded, Pending));
    held.decide(&third, Rejected).await.unwrap();
    let fourth = held.try_ask(next, "c").await.unwrap();
    assert_eq!((held.state(&third).await, held.state(&fourth).await), (Rejected, Pending), "a decision stays");
    let listed = held.world.store.approvals(None, None, ALL).await.unwrap();
    assert_eq!(listed.len(), 4);
    let pending = held.world.store.approvals(None, Some(Pending), ALL).await.unwrap();
    assert_eq!(pending, [fourth]);
    let page = Page { after: Some(listed[0].id.to_string()), limit: 2 };
    assert_eq!(held.world.store.approvals(None, None, page).await.unwrap(), listed[1..3]);
}

async fn a_plan_that_was_superseded_waits_again_when_the_agent_comes_back_to_it(world: World) {
    let held = Held::new(world).await;
    let (first, second) = (held.ask("a").await, held.ask("b").await);
    let again = held.ask("a").await;
    assert_eq!(again, first, "the same row waits");
    assert_eq!(held.state(&second).await, Superseded);
}

async fn what_is_no_longer_blocked_no_longer_waits(world: World) {
    let held = Held::new(world).await;
    let say = async |revision, said: &[_]| {
        let said = report(revision, said);
        held.world.store.report_status(stamp(), held.agent, held.stack, said).await.unwrap();
    };
    let first = held.ask("a").await;
    say(held.revision, &[("Blocked", True, "")]).await;
    assert_eq!(held.state(&first).await, Pending);
    say(held.revision, &[("Blocked", False, "")]).await;
    assert_eq!(held.state(&first).await, Superseded);
    held.ask("a").await;
    say(held.revision, &[("Blocked", False, "")]).await;
    assert_eq!(held.state(&first).await, Superseded, "it says nothing new about the stack, and this about the plan");
    let next = held.world.submit(held.stack).await.id;
    let second = held.try_ask(next, "a").await.unwrap();
    say(held.revision, &[("Ready", True, "")]).await;
    assert_eq!(held.state(&second).await, Pending, "that was about an older revision");
    say(next, &[("Ready", True, "")]).await;
    assert_eq!(held.state(&second).await, Superseded);
}

async fn a_decision_is_made_once_and_makes_the_agent_look(world: World) {
    let held = Held::new(world).await;
    let approval = held.ask("a").await;
    let before = held.world.store.hand_out(held.agent).await.unwrap();
    let approved = held.decide(&approval, Approved).await.unwrap();
    assert_eq!((approved.state, approved.decided_by.as_deref()), (Approved, Some("admin")));
    assert_eq!(approved.decided_at, Some(crate::support::at(0)));
    let after = held.world.store.hand_out(held.agent).await.unwrap();
    assert!(after.version > before.version && after.nudged > before.nudged);
    let entries = held.entries().await;
    assert_eq!(held.decide(&approval, Approved).await.unwrap(), approved);
    let refused = held.decide(&approval, Rejected).await;
    assert_eq!(refused, Err(StoreError::Decided { approval: approval.id, state: Approved }));
    assert_eq!(held.entries().await, entries);
    assert_eq!(held.world.store.hand_out(held.agent).await.unwrap().version, after.version);
    let (old, _) = (held.ask("b").await, held.ask("c").await);
    let refused = held.decide(&old, Approved).await;
    assert_eq!(refused, Err(StoreError::Decided { approval: old.id, state: Superseded }));
}

async fn what_belongs_to_another_generator_does_not_exist(world: World) {
    let held = Held::new(world).await;
    let approval = held.ask("a").await;
    let (store, other) = (&held.world.store, GeneratorId::mint(&entropy()));
    held.world.add_generator(other, "other").await;
    let own = Some(held.world.generator);
    assert_eq!(store.approvals(own, None, ALL).await.unwrap(), std::slice::from_ref(&approval));
    assert_eq!(store.approvals(Some(other), None, ALL).await.unwrap(), []);
    for refused in [
        store.approval(approval.id, Some(other)).await,
        store.decide(stamp(), approval.id, Some(other), Approved).await,
    ] {
        assert!(matches!(refused, Err(StoreError::NotFound { noun: Noun::Approval, .. })), "{refused:?}");
    }
    assert_eq!(store.decide(stamp(), approval.id, own, Rejected).await.unwrap().state, Rejected);
}

async fn what_is_gone_waits_for_nobody(world: World) {
    let held = Held::new(world).await;
    held.world.store.remove_target(stamp(), held.agent, held.stack).await.unwrap();
    let removal = held.world.only_removal(held.agent).await;
    let approval = held.try_ask(removal, "a").await.unwrap();
    held.world.report(held.agent, removal, EventStatus::Success).await.unwrap();
    assert_eq!(held.state(&approval).await, Superseded);
    let refused = held.try_ask(removal, "b").await;
    assert!(matches!(refused, Err(StoreError::NotFound { noun: Noun::Stack, .. })), "{refused:?}");
    held.world.target(held.agent, held.stack).await.unwrap();
    let approval = held.ask("c").await;
    held.world.store.delete_agent(stamp(), held.agent).await.unwrap();
    assert_eq!(held.state(&approval).await, Superseded);
}
