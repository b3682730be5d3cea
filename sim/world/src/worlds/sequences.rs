//! Sequences of operations that have to meet in time: single operations, drawn one by one, rarely do.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use sindri_model::policy::REMOVAL_ANNOTATION;

use super::operators::{operate, submit_next, submit_text, submit_without};
use super::people::{Action, act_on, create_foreign};
use super::pools::{NAMESPACES, choose, choose_weighted};
use super::random_stack::RandomStack;
use crate::rng::SeededRng;
use crate::scenario::{ClusterFault, ClusterRef, Fleet, Restore, Span, StackAnnotation, StackRef, Step, replica_name};

#[derive(Clone, Copy)]
enum Sequence {
    /// While the agent is down, a person changes an object and the next revision drops it.
    ChangedWhileAway,
    /// The agent is killed while it applies a revision. Before it starts again, an object of it is dropped.
    KilledDuringPass,
    /// The API server refuses the kind of an object while a revision drops it.
    DroppedWhileDenied,
    /// A dropped object has a finalizer that no client removes for a while.
    DroppedWhileHeld,
    /// An object moves to another stack.
    Moved,
    /// An object that pruning keeps is dropped.
    DroppedAndKept,
    /// A stack is deleted whose removal keeps its objects.
    DeletedAndKept,
    /// A namespace is dropped in which a person has created an object.
    DroppedAroundForeign,
    /// An object is dropped, and declared again while the agent deletes it.
    DroppedForAMoment,
    /// The broker forgets a few operations, because its backup is restored.
    RestoredBroker,
}

const WEIGHTS: [(u64, Sequence); 10] = [
    (3, Sequence::ChangedWhileAway),
    (2, Sequence::KilledDuringPass),
    (2, Sequence::DroppedWhileDenied),
    (1, Sequence::DroppedWhileHeld),
    (2, Sequence::Moved),
    (2, Sequence::DroppedAndKept),
    (1, Sequence::DeletedAndKept),
    (2, Sequence::DroppedAroundForeign),
    (2, Sequence::DroppedForAMoment),
    (2, Sequence::RestoredBroker),
];

/// Makes the steps of a sequence about the stack of this index, which was submitted before.
pub fn make_sequence(rng: &mut SeededRng, stacks: &mut [RandomStack], index: usize, fleet: &Fleet) -> Vec<Step> {
    let cluster = choose(rng, &fleet.agents).clone();
    let object = choose(rng, &stacks[index].object_keys()).clone();
    match choose_weighted(rng, &WEIGHTS) {
        Sequence::ChangedWhileAway => {
            let (down, up) = stop_agents(&cluster, fleet);
            let action =
                choose_weighted(rng, &[(3, Action::ReplaceByForeign), (1, Action::Edit), (1, Action::StripLabel)]);
            let changed = act_on(rng, &stacks[index], &object, &cluster, action);
            let dropped = drop_or_delete(rng, &mut stacks[index], &object);
            [down, changed, vec![wait(rng, 1, 2_000)], dropped, up].concat()
        }
        Sequence::KilledDuringPass => {
            let (down, up) = stop_agents(&cluster, fleet);
            let submitted = submit_next(rng, &mut stacks[index]);
            let applying = wait(rng, 1, 60);
            let object = choose(rng, &stacks[index].object_keys()).clone();
            let dropped = drop_or_delete(rng, &mut stacks[index], &object);
            [vec![submitted, applying], down, dropped, vec![wait(rng, 1, 20_000)], up].concat()
        }
        Sequence::DroppedWhileDenied => {
            let status = choose_weighted(rng, &[(2, 403), (2, 503)]);
            let fault = ClusterFault {
                cluster: cluster.clone(),
                requests: requests_for(&object),
                status: Some(status),
                ..ClusterFault::default()
            };
            let dropped = drop_or_delete(rng, &mut stacks[index], &object);
            let healed = Step::Heal(ClusterRef { cluster });
            [vec![Step::Fail(fault), wait(rng, 1, 15_000)], dropped, vec![wait(rng, 5_000, 60_000), healed]].concat()
        }
        Sequence::DroppedWhileHeld => {
            let held = act_on(rng, &stacks[index], &object, &cluster, Action::Hold);
            let dropped = drop_or_delete(rng, &mut stacks[index], &object);
            [held, vec![wait(rng, 1, 5_000)], dropped, vec![wait(rng, 10_000, 60_000)]].concat()
        }
        Sequence::Moved => move_object(rng, stacks, index, &object),
        Sequence::DroppedAndKept => {
            let stack = &mut stacks[index];
            let text = stack.keep_object(&object);
            let kept = submit_text(stack, text);
            let applying = wait(rng, 1_000, 40_000);
            [vec![kept, applying], drop_or_delete(rng, stack, &object)].concat()
        }
        Sequence::DeletedAndKept => {
            let stack = stacks[index].name.to_owned();
            let (key, value) = (REMOVAL_ANNOTATION.to_owned(), Some("release".to_owned()));
            let annotated = Step::Annotate(StackAnnotation { stack: stack.clone(), key, value });
            vec![annotated, wait(rng, 1_000, 40_000), Step::Delete(StackRef { stack })]
        }
        Sequence::DroppedAroundForeign => drop_around_foreign(rng, &mut stacks[index], &cluster),
        Sequence::DroppedForAMoment => {
            let stack = &mut stacks[index];
            let Some(text) = stack.newest_text() else { return Vec::new() };
            let Some(dropped) = submit_without(stack, &object) else { return Vec::new() };
            vec![dropped, wait(rng, 1, 300), submit_text(stack, text)]
        }
        Sequence::RestoredBroker => restore_broker(rng, stacks, fleet),
    }
}

/// Lets the broker forget what happens between a backup and its restore. The operators declare the restore, and
/// submit the stacks again that they have changed.
fn restore_broker(rng: &mut SeededRng, stacks: &mut [RandomStack], fleet: &Fleet) -> Vec<Step> {
    if fleet.brokers > 1 {
        return Vec::new();
    }
    let backup = stacks.to_vec();
    let mut steps = vec![Step::Backup, wait(rng, 1, 5_000)];
    let (mut changed, mut deleted) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..rng.between(1, 4) {
        let stack = rng.between(0, stacks.len() as u64 - 1) as usize;
        if deleted.contains(&stack) {
            continue;
        }
        let operation = operate(rng, &mut stacks[stack], &fleet.agents);
        // The backup knows other ids and keys of agents that were created since.
        if operation.iter().any(|step| matches!(step, Step::DeleteAgent(_))) {
            continue;
        }
        if operation.iter().any(|step| matches!(step, Step::Delete(_))) {
            deleted.insert(stack);
        }
        changed.insert(stack);
        steps.extend(operation);
        steps.push(wait(rng, 1, 20_000));
    }
    stacks.clone_from_slice(&backup);
    steps.push(Step::Restore(Restore { declared: true }));
    for index in changed {
        if let Some(text) = stacks[index].newest_text() {
            steps.extend([wait(rng, 1, 5_000), submit_text(&stacks[index], text)]);
        }
    }
    steps
}

/// Lets a person create an object in a namespace of a stack, which then drops it.
fn drop_around_foreign(rng: &mut SeededRng, stack: &mut RandomStack, cluster: &str) -> Vec<Step> {
    let namespace = NAMESPACES[1];
    let declared =
        stack.add_document(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    let declared = submit_text(stack, declared);
    let (applying, deleting) = (wait(rng, 1_000, 40_000), wait(rng, 1, 3_000));
    let created = create_foreign(cluster, "person-c", namespace);
    let dropped = drop_or_delete(rng, stack, &format!("Namespace {namespace}"));
    // Before the next revision, or while the agent deletes.
    let dropped = match rng.chance(1, 2) {
        true => [vec![created, deleting], dropped].concat(),
        false => [dropped, vec![deleting, created]].concat(),
    };
    [vec![declared, applying], dropped].concat()
}

/// Lets another stack declare an object, and this one drop it. Sometimes the other stack comes last.
fn move_object(rng: &mut SeededRng, stacks: &mut [RandomStack], index: usize, object: &str) -> Vec<Step> {
    let others: Vec<usize> = stacks
        .iter()
        .enumerate()
        .filter(|(at, stack)| *at != index && stack.is_submitted())
        .map(|(at, _)| at)
        .collect();
    let Some(document) = stacks[index].find_document(object).filter(|_| !others.is_empty()) else { return Vec::new() };
    let other = *choose(rng, &others);
    let Some(dropped) = submit_without(&mut stacks[index], object) else { return Vec::new() };
    let text = stacks[other].add_document(document);
    let added = submit_text(&stacks[other], text);
    let pause = wait(rng, 1, 20_000);
    if rng.chance(3, 4) { vec![added, pause, dropped] } else { vec![dropped, pause, added] }
}

/// Drops an object with the next revision; the stack is deleted if that was its only one.
fn drop_or_delete(rng: &mut SeededRng, stack: &mut RandomStack, object: &str) -> Vec<Step> {
    let delete = Step::Delete(StackRef { stack: stack.name.to_owned() });
    if rng.chance(1, 5) {
        return vec![delete];
    }
    vec![submit_without(stack, object).unwrap_or(delete)]
}

/// Kills every process of the agent of a cluster; and starts them again.
fn stop_agents(cluster: &str, fleet: &Fleet) -> (Vec<Step>, Vec<Step>) {
    let processes = || (0..fleet.replicas).map(|number| replica_name(cluster, number));
    (processes().map(Step::Kill).collect(), processes().map(Step::Restart).collect())
}

/// Returns the words of the requests for the kind of an object.
fn requests_for(object: &str) -> String {
    let kind = object.split(' ').next().unwrap_or_default();
    let plural = format!("/{}s", kind.rsplit('/').next().unwrap_or_default().to_lowercase());
    if kind == "ConfigMap" { format!("{plural} !inventory") } else { plural }
}

fn wait(rng: &mut SeededRng, shortest: u64, longest: u64) -> Step {
    Step::Advance(Span(Duration::from_millis(rng.between(shortest, longest))))
}
