//! Pages that end because of the size of their texts: the pages together have every entry, once.

use sindri_broker::{ListScope, Page, WriteContext};
use sindri_model::wire::{AgentEvent, ConditionStatus, EventStatus};
use sindri_model::{AgentId, StackId};

use crate::deliveries::webhook;
use crate::status::report;
use crate::support::{ALL, World, at, contracts, event, revision, write_context};

contracts!(
    unapplied_revisions_are_listed_in_pages,
    outcomes_are_listed_in_pages,
    policies_are_listed_in_pages,
    statuses_are_listed_in_pages,
    webhooks_are_listed_in_pages,
);

/// Number of entries, of which three fill a page.
const ENTRIES: usize = 7;
const LARGE_BYTES: usize = Page::TEXT_BYTES_MAX as usize / 3 + 1;

/// Annotations of one stack. PostgreSQL limits the size of each, because they are indexed.
const NOTES: usize = 8;

fn page_after(last: Option<String>) -> Page {
    Page { after: last, ..ALL }
}

/// Checks the number of entries on the pages.
fn check_pages(pages: &[usize]) {
    assert_eq!(pages, [3, 3, 1, 0]);
}

/// An agent that should have this number of stacks with a large bundle.
async fn with_stacks(world: &World, bytes: usize) -> (AgentId, Vec<StackId>) {
    let [agent] = world.add_agents().await;
    let mut stacks = Vec::new();
    for number in 0..ENTRIES {
        let stack = world.add_stack(&format!("s{number}")).await;
        world.target(agent, stack).await.unwrap();
        let bundle = format!("a: {}", "x".repeat(bytes));
        world.store.append_revision(write_context(), revision(stack, &bundle)).await.unwrap();
        stacks.push(stack);
    }
    (agent, stacks)
}

async fn unapplied_revisions_are_listed_in_pages(world: World) {
    let (agent, _) = with_stacks(&world, LARGE_BYTES).await;
    assert_eq!(world.store.get_unapplied(agent, ALL).await.unwrap().revisions.len(), 3);
    let (mut pages, mut last, mut all) = (Vec::new(), None, Vec::new());
    while pages.last() != Some(&0) {
        let page = world.store.deliver_unapplied(agent, page_after(last.clone())).await.unwrap().revisions;
        last = page.last().map(|target| target.revision.id.to_string()).or(last);
        pages.push(page.len());
        all.extend(page.into_iter().map(|target| target.revision));
    }
    check_pages(&pages);
    let whole = world.store.get_target_state(agent).await.unwrap().revisions;
    assert!(whole.iter().map(|target| &target.revision).eq(&all));
    // Applied revisions are left out, failed ones are not, and a removal is there until it is confirmed.
    world.report(agent, all[0].id, EventStatus::Success).await.unwrap();
    world.report(agent, all[1].id, EventStatus::Failure).await.unwrap();
    world.store.remove_target(write_context(), agent, all[0].stack_id).await.unwrap();
    let mut unapplied = Vec::new();
    let mut last = None;
    for _ in 0..3 {
        let page = world.store.get_unapplied(agent, page_after(last.clone())).await.unwrap().revisions;
        last = page.last().map(|target| target.revision.id.to_string()).or(last);
        unapplied.extend(page.into_iter().map(|target| target.revision));
    }
    assert_eq!(unapplied[..6], all[1..]);
    assert!(unapplied.len() == 7 && unapplied[6].is_deletion_marker && unapplied[6].stack_id == all[0].stack_id);
    world.report(agent, unapplied[6].id, EventStatus::Success).await.unwrap();
    let page = world.store.get_unapplied(agent, page_after(last)).await.unwrap();
    assert_eq!(page.revisions.len(), 0);
}

async fn outcomes_are_listed_in_pages(world: World) {
    let (agent, _) = with_stacks(&world, 1).await;
    for (revision, _) in world.poll(agent).await {
        let message = Some("x".repeat(LARGE_BYTES));
        let event = AgentEvent { message, ..event(agent, revision, EventStatus::Failure) };
        world.store.record_event(write_context(), event).await.unwrap();
    }
    let (mut pages, mut last) = (Vec::new(), None);
    while pages.last() != Some(&0) {
        let page = world.store.list_outcomes(agent, page_after(last.clone())).await.unwrap();
        last = page.last().map(|event| event.id.to_string()).or(last);
        pages.push(page.len());
    }
    check_pages(&pages);
}

async fn policies_are_listed_in_pages(world: World) {
    let (agent, mut stacks) = with_stacks(&world, 1).await;
    stacks.sort();
    for stack in &stacks {
        for number in 0..NOTES {
            let (key, value) = (format!("sindri.dev/note{number}"), "x".repeat(LARGE_BYTES / NOTES + 1));
            world.annotate_stack(*stack, &key, &value).await;
        }
    }
    let (mut pages, mut last, mut all) = (Vec::new(), None, Vec::new());
    while pages.last() != Some(&0) {
        let (_, page) = world.store.list_policies(agent, page_after(last.clone())).await.unwrap();
        last = page.last().map(|policy| policy.stack_id.to_string()).or(last);
        pages.push(page.len());
        all.extend(page.into_iter().map(|policy| policy.stack_id));
    }
    check_pages(&pages);
    assert_eq!(all, stacks);
    // Names of dependencies are repeated in a response, with the ids of their stacks.
    let names = "s0,".repeat(LARGE_BYTES / 32 / 3 + 2);
    for stack in world.store.list_stacks(ListScope::All, ALL).await.unwrap() {
        for number in 0..NOTES {
            let key = format!("sindri.dev/note{number}");
            world.store.remove_stack_annotation(write_context(), stack.id, key).await.unwrap();
        }
        if stack.name != "s0" {
            world.annotate_stack(stack.id, "sindri.dev/depends-on", &names).await;
        }
    }
    let (_, page) = world.store.list_policies(agent, ALL).await.unwrap();
    assert_eq!(page.len(), 3);
}

async fn statuses_are_listed_in_pages(world: World) {
    let agents: [AgentId; ENTRIES] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    let revision = world.submit(stack).await;
    for agent in agents {
        world.target(agent, stack).await.unwrap();
        world.poll(agent).await;
        let message = "x".repeat(LARGE_BYTES);
        let report = report(revision.id, &[("Applied", ConditionStatus::True, &message)]);
        let context = WriteContext { time: at(1), ..write_context() };
        world.store.record_stack_status(context, agent, stack, report).await.unwrap();
    }
    let (mut pages, mut last, mut all) = (Vec::new(), None, Vec::new());
    while pages.last() != Some(&0) {
        let reports = world.store.get_stack_reports(stack, page_after(last.clone())).await.unwrap();
        assert_eq!(reports.assignments.len(), ENTRIES, "each page has the reports of all agents in short");
        last = reports.agents.last().map(|status| status.agent_id.to_string()).or(last);
        pages.push(reports.agents.len());
        all.extend(reports.agents.into_iter().map(|status| status.agent_id));
    }
    check_pages(&pages);
    assert_eq!(all, agents);
}

async fn webhooks_are_listed_in_pages(world: World) {
    for number in 0..ENTRIES {
        let mut webhook = webhook(&number.to_string(), &["*"]);
        webhook.public.target_labels = Some(vec!["x".repeat(LARGE_BYTES)]);
        world.store.create_webhook(write_context(), webhook).await.unwrap();
    }
    let (mut pages, mut last) = (Vec::new(), None);
    while pages.last() != Some(&0) {
        let page = world.store.list_webhooks(page_after(last.clone())).await.unwrap();
        last = page.last().map(|webhook| webhook.id.to_string()).or(last);
        pages.push(page.len());
    }
    check_pages(&pages);
}
