//! Data that an agent reads beside its target state: policies and its last outcomes.

use sindri_model::wire::EventStatus::{Failure, Success};
use sindri_model::{AgentId, RevisionId, Sequence};

use crate::support::{ALL, World, contracts, event, write_context};

contracts!(
    policies_are_the_policy_annotations_of_stacks_in_the_target_state,
    a_policy_annotation_requests_a_new_pass_of_agents_that_have_the_stack_only,
    outcomes_are_the_last_events_about_the_target_state,
    outcomes_do_not_depend_on_the_length_of_the_history,
);

async fn policies(world: &World, agent: AgentId) -> Vec<String> {
    let (_, policies) = world.store.list_policies(agent, ALL).await.unwrap();
    let pairs = policies.into_iter().flat_map(|policy| policy.annotations);
    pairs.map(|(key, value)| format!("{key}={value}")).collect()
}

async fn policies_are_the_policy_annotations_of_stacks_in_the_target_state(world: World) {
    let [agent, other] = world.add_agents().await;
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
    assert_eq!(
        policies(&world, agent).await,
        Vec::<String>::new(),
        "without a revision the stack is not in the target state"
    );
    world.submit(web).await;
    world.submit(plain).await;
    world.poll(agent).await;
    let both = ["sindri.dev/=bare", "sindri.dev/prune=off"];
    assert_eq!(policies(&world, agent).await, both);
    assert_eq!(world.store.list_policies(agent, ALL).await.unwrap().1.len(), 1, "a stack without policies is left out");
    assert_eq!(policies(&world, other).await, Vec::<String>::new());
    world.store.remove_target(write_context(), agent, web).await.unwrap();
    assert_eq!(policies(&world, agent).await, both, "policies apply to the removal too");
    let removal = world.poll(agent).await.into_iter().find(|(_, is_removal)| *is_removal).unwrap().0;
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(policies(&world, agent).await, Vec::<String>::new());
}

async fn a_policy_annotation_requests_a_new_pass_of_agents_that_have_the_stack_only(world: World) {
    let [has, removes, other] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    for agent in [has, removes] {
        world.target(agent, stack).await.unwrap();
    }
    world.submit(stack).await;
    world.poll(removes).await;
    world.store.remove_target(write_context(), removes, stack).await.unwrap();
    let versions = async || {
        let mut versions = Vec::new();
        for agent in [has, removes, other] {
            let target = world.store.get_target_state(agent).await.unwrap();
            versions.push((target.version, target.recheck_version));
        }
        versions
    };
    let before = versions().await;
    world.annotate_stack(stack, "team", "a").await;
    assert_eq!(versions().await, before, "it is not a policy annotation");
    let mut last = before.clone();
    for step in 0..2 {
        match step {
            0 => world.annotate_stack(stack, "sindri.dev/prune", "off").await,
            _ => {
                world
                    .store
                    .remove_stack_annotation(write_context(), stack, "sindri.dev/prune".to_owned())
                    .await
                    .unwrap();
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

async fn outcomes(world: &World, agent: AgentId) -> Vec<(RevisionId, String)> {
    let events = world.store.list_outcomes(agent, ALL).await.unwrap();
    events.into_iter().map(|event| (event.deployment_object_id, event.status.to_string())).collect()
}

async fn outcomes_are_the_last_events_about_the_target_state(world: World) {
    let [agent, other] = world.add_agents().await;
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
    assert_eq!(outcomes(&world, agent).await, [(old, "FAILURE".to_owned())]);
    world.report(agent, old, Success).await.unwrap();
    world.report(other, old, Failure).await.unwrap();
    assert_eq!(outcomes(&world, agent).await, [(old, "SUCCESS".to_owned())]);
    let (new, of_shop) = (world.submit(web).await.id, world.submit(shop).await.id);
    assert_eq!(outcomes(&world, agent).await, [], "there is no event about the newest revision");
    world.poll(agent).await;
    world.report(agent, of_shop, Success).await.unwrap();
    world.report(agent, new, Failure).await.unwrap();
    assert_eq!(outcomes(&world, agent).await, [(of_shop, "SUCCESS".to_owned()), (new, "FAILURE".to_owned())]);
    world.store.remove_target(write_context(), agent, web).await.unwrap();
    let removal = world.poll(agent).await.into_iter().find(|(_, is_removal)| *is_removal).unwrap().0;
    world.report(agent, removal, Failure).await.unwrap();
    assert_eq!(outcomes(&world, agent).await, [(of_shop, "SUCCESS".to_owned()), (removal, "FAILURE".to_owned())]);
    world.report(agent, removal, Success).await.unwrap();
    assert_eq!(outcomes(&world, agent).await, [(of_shop, "SUCCESS".to_owned())]);
}

async fn outcomes_do_not_depend_on_the_length_of_the_history(world: World) {
    let [agent] = world.add_agents().await;
    let stack = world.add_stack("web").await;
    world.target(agent, stack).await.unwrap();
    let revision = world.submit(stack).await.id;
    world.poll(agent).await;
    for _ in 0..200 {
        world.report(agent, revision, Failure).await.unwrap();
    }
    let last = world.store.record_event(write_context(), event(agent, revision, Success)).await.unwrap();
    assert_eq!(world.store.list_outcomes(agent, ALL).await.unwrap(), [last]);
}
