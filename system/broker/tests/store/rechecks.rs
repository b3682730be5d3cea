//! What an agent has to look at beside its target state: policies, and what it said last.

use sindri_model::wire::EventStatus::{Failure, Success};
use sindri_model::{AgentId, RevisionId, Sequence};

use crate::support::{World, contracts, event, stamp};

contracts!(
    policies_are_annotations_for_agents_of_stacks_in_the_target_state,
    an_annotation_for_agents_makes_those_that_have_the_stack_look_and_no_others,
    outcomes_are_the_last_words_about_what_is_wanted,
    outcomes_do_not_depend_on_how_much_was_ever_said,
);

async fn policies(world: &World, agent: AgentId) -> Vec<String> {
    let policies = world.store.policies(agent).await.unwrap();
    let pairs = policies.into_iter().flat_map(|policy| policy.annotations);
    pairs.map(|(key, value)| format!("{key}={value}")).collect()
}

async fn policies_are_annotations_for_agents_of_stacks_in_the_target_state(world: World) {
    let [agent, other] = world.with_agents().await;
    let (web, plain) = (world.add_stack("web").await, world.add_stack("plain").await);
    for stack in [web, plain] {
        world.target(agent, stack).await.unwrap();
    }
    for (key, value) in [
        ("sindri.dev/prune", "off"),
        ("sindri.dev/", "bare"),
        ("sindri.dev0", "after"),
        ("sindri.de/x", "before"),
        ("team", "a"),
    ] {
        world.annotate_stack(web, key, value).await;
    }
    world.annotate_stack(plain, "team", "b").await;
    assert_eq!(policies(&world, agent).await, Vec::<String>::new(), "without a revision it is not in the target state");
    world.submit(web).await;
    world.submit(plain).await;
    world.poll(agent).await;
    let both = ["sindri.dev/=bare", "sindri.dev/prune=off"];
    assert_eq!(policies(&world, agent).await, both);
    assert_eq!(world.store.policies(agent).await.unwrap().len(), 1, "a stack without any is left out");
    assert_eq!(policies(&world, other).await, Vec::<String>::new());
    world.store.remove_target(stamp(), agent, web).await.unwrap();
    assert_eq!(policies(&world, agent).await, both, "it still has to remove it, and how is said here");
    let removal = world.poll(agent).await.into_iter().find(|(_, is_removal)| *is_removal).unwrap().0;
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(policies(&world, agent).await, Vec::<String>::new());
}

async fn an_annotation_for_agents_makes_those_that_have_the_stack_look_and_no_others(world: World) {
    let [has, owes, other] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [has, owes] {
        world.target(agent, stack).await.unwrap();
    }
    world.submit(stack).await;
    world.poll(owes).await;
    world.store.remove_target(stamp(), owes, stack).await.unwrap();
    let versions = async || {
        let mut versions = Vec::new();
        for agent in [has, owes, other] {
            let desired = world.store.desired_set(agent).await.unwrap();
            versions.push((desired.version, desired.nudged));
        }
        versions
    };
    let before = versions().await;
    world.annotate_stack(stack, "team", "a").await;
    assert_eq!(versions().await, before, "it is not for agents");
    let mut last = before.clone();
    for step in 0..2 {
        match step {
            0 => world.annotate_stack(stack, "sindri.dev/prune", "off").await,
            _ => {
                world.store.remove_stack_annotation(stamp(), stack, "sindri.dev/prune".to_owned()).await.unwrap();
            }
        }
        let now = versions().await;
        assert!(now[0].0 > last[0].0 && now[0].1 == now[0].0, "{now:?}");
        assert!(now[1].0 > last[1].0 && now[1].1 == now[1].0, "{now:?}");
        assert_eq!(now[2], before[2]);
        last = now;
    }
    assert_eq!(before[0].1, Sequence::default());
}

async fn said(world: &World, agent: AgentId) -> Vec<(RevisionId, String)> {
    let outcomes = world.store.outcomes(agent).await.unwrap();
    outcomes.into_iter().map(|event| (event.deployment_object_id, event.status.to_string())).collect()
}

async fn outcomes_are_the_last_words_about_what_is_wanted(world: World) {
    let [agent, other] = world.with_agents().await;
    let (web, shop, silent) =
        (world.add_stack("web").await, world.add_stack("shop").await, world.add_stack("silent").await);
    for stack in [web, shop, silent] {
        world.target(agent, stack).await.unwrap();
        world.target(other, stack).await.unwrap();
    }
    let old = world.submit(web).await.id;
    world.submit(silent).await;
    world.poll(agent).await;
    world.report(agent, old, Failure).await.unwrap();
    assert_eq!(said(&world, agent).await, [(old, "FAILURE".to_owned())]);
    world.report(agent, old, Success).await.unwrap();
    world.report(other, old, Failure).await.unwrap();
    assert_eq!(said(&world, agent).await, [(old, "SUCCESS".to_owned())]);
    let (new, of_shop) = (world.submit(web).await.id, world.submit(shop).await.id);
    assert_eq!(said(&world, agent).await, [], "nothing was said about the newest");
    world.poll(agent).await;
    world.report(agent, of_shop, Success).await.unwrap();
    world.report(agent, new, Failure).await.unwrap();
    assert_eq!(said(&world, agent).await, [(of_shop, "SUCCESS".to_owned()), (new, "FAILURE".to_owned())]);
    world.store.remove_target(stamp(), agent, web).await.unwrap();
    let removal = world.poll(agent).await.into_iter().find(|(_, is_removal)| *is_removal).unwrap().0;
    world.report(agent, removal, Failure).await.unwrap();
    assert_eq!(said(&world, agent).await, [(of_shop, "SUCCESS".to_owned()), (removal, "FAILURE".to_owned())]);
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(said(&world, agent).await, [(of_shop, "SUCCESS".to_owned())]);
}

async fn outcomes_do_not_depend_on_how_much_was_ever_said(world: World) {
    let [agent] = world.with_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await.id;
    world.poll(agent).await;
    for _ in 0..200 {
        world.report(agent, revision, Failure).await.unwrap();
    }
    let last = world.store.record_event(stamp(), event(agent, revision, Success)).await.unwrap();
    assert_eq!(world.store.outcomes(agent).await.unwrap(), [last]);
}
