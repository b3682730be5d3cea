//! Pods and nodes that fail and come back: the control plane replaces the pods, and the controller reports them.
//!
//! The simulated API server has no heartbeats of nodes. A failed node is one that gets no new pods and whose pods are
//! deleted, as the control plane does some minutes after the last heartbeat.

use std::time::Duration;

use serde_json::Value;
use sindri_guests::harness::{POD, PodOutcome, PodRule, World, is_guest_write, simulate};
use sindri_guests::object::{name, text};
use sindri_guests::self_healing::{AGENT, REPAIR_MAX, Variant};
use sindri_world::engine::EngineKind;

use crate::self_healing_support::{
    API, GUEST, NAMESPACE, NODES, PODS, add_oracles, agent, await_converged, check_converged, declare, edit_agent,
    phase, phases, start, statuses,
};

const SOON: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);

/// Runs a test with the controller and one agent whose pods all run.
fn with_running_pods(seed: u64, test: impl FnOnce(&mut World) + Send) {
    simulate(EngineKind::Fast, seed, |world| {
        start(world, Variant::Correct);
        add_oracles(world);
        declare(world, "bot", "small");
        assert_eq!(await_converged(world), Ok(()));
        world.advance(SOON);
        test(world);
        assert!(world.violations().is_empty(), "{:?}", world.violations());
    });
}

/// Returns the reported counts of ready pods without repetitions, and asserts that the phase was always the same.
fn reported_counts(world: &World, from: usize, phase: &str) -> Vec<u64> {
    let written = statuses(world, from, "bot");
    assert_eq!(phases(&written), [phase]);
    let mut counts: Vec<u64> = written.iter().filter_map(|agent| agent["status"]["readyReplicas"].as_u64()).collect();
    counts.dedup();
    counts
}

/// Asserts that the controller wrote nothing but statuses.
fn assert_only_statuses(world: &World, from: usize) {
    let kinds = world.writes(API)[from..].iter().filter(|write| is_guest_write(write)).map(|write| &write.key.kind);
    assert!(kinds.into_iter().all(|kind| kind == AGENT.kind), "the children have their desired state");
}

fn nodes_of_pods(world: &mut World) -> Vec<String> {
    world.list(API, POD).iter().map(|pod| text(pod, "/spec/nodeName").to_owned()).collect()
}

#[test]
fn a_deleted_pod_comes_back_and_the_count_follows() {
    with_running_pods(1, |world| {
        let from = world.writes(API).len();
        let pod = name(&world.list(API, POD)[0]).to_owned();
        world.delete(API, POD, NAMESPACE, &pod);
        world.advance(SOON);
        assert_eq!(world.list(API, POD).len() as u64, PODS);
        assert!(world.get(API, POD, NAMESPACE, &pod).is_none(), "the new pod has another name");
        assert_eq!(reported_counts(world, from, "Ready"), [2, 3]);
        assert_only_statuses(world, from);
        assert_eq!(check_converged(world), Ok(()));
    });
}

#[test]
fn the_pods_of_a_failed_node_run_on_another_one() {
    with_running_pods(2, |world| {
        let lost = nodes_of_pods(world).iter().filter(|node| **node == NODES[0]).count();
        assert!(lost > 0 && (lost as u64) < PODS, "the pods run on both nodes");
        let from = world.writes(API).len();
        world.fail_node(API, NODES[0]);
        world.advance(SOON);
        assert_eq!(nodes_of_pods(world), [NODES[1]; PODS as usize]);
        let counts = reported_counts(world, from, "Ready");
        assert!(counts.iter().min().is_some_and(|least| *least < PODS) && counts.last() == Some(&PODS), "{counts:?}");
        assert_only_statuses(world, from);
        // The node comes back, and takes the next pod.
        world.repair_node(API, NODES[0]);
        edit_agent(world, "bot", |spec| spec["replicas"] = (PODS + 1).into());
        assert_eq!(await_converged(world), Ok(()));
        assert!(nodes_of_pods(world).iter().any(|node| node == NODES[0]));
    });
}

#[test]
fn an_agent_without_any_node_is_degraded_after_two_minutes_to_the_second() {
    with_running_pods(3, |world| {
        NODES.iter().for_each(|node| world.fail_node(API, node));
        let has_lost = |world: &mut World| agent(world, "bot").is_some_and(|bot| bot["status"]["readyReplicas"] == 0);
        assert!(world.advance_until_written(SOON, has_lost));
        let lost_at = world.now();
        // The limit survives a restart of the controller: the start of the repair is in the status.
        world.advance(MINUTE);
        world.kill(GUEST);
        world.restart(GUEST);
        let is_degraded = |world: &mut World| phase(world, "bot") == "Degraded";
        assert!(world.advance_until_written(2 * MINUTE, is_degraded));
        let elapsed = world.now() - lost_at + Duration::from_millis(500);
        assert_eq!(elapsed.as_secs(), REPAIR_MAX.as_secs());
        NODES.iter().for_each(|node| world.repair_node(API, node));
        world.advance(SOON);
        assert_eq!(check_converged(world), Ok(()));
    });
}

#[test]
fn an_agent_whose_pods_crash_from_the_start_stays_pending_until_they_run() {
    simulate(EngineKind::Fast, 4, |world| {
        start(world, Variant::Correct);
        add_oracles(world);
        let image = Some("bot:broken".to_owned());
        world.set_pod_outcome(API, PodRule { image, outcome: PodOutcome::CrashLoop, ..PodRule::default() });
        declare(world, "bot", "small");
        edit_agent(world, "bot", |spec| spec["image"] = "bot:broken".into());
        world.advance(2 * REPAIR_MAX);
        assert_eq!(phases(&statuses(world, 0, "bot")), ["Pending"]);
        // The pods with the new image run.
        edit_agent(world, "bot", |spec| spec["image"] = "bot:2".into());
        assert_eq!(await_converged(world), Ok(()));
        let written: Vec<Value> = statuses(world, 0, "bot");
        assert_eq!(phases(&written), ["Pending", "Ready"]);
        // A broken image in a rollout stops at the pods that still run.
        edit_agent(world, "bot", |spec| spec["image"] = "bot:broken".into());
        world.advance(2 * REPAIR_MAX);
        assert_eq!(phase(world, "bot"), "Degraded");
        world.clear_pod_outcomes(API);
        assert_eq!(await_converged(world), Ok(()));
        assert!(world.violations().is_empty(), "{:?}", world.violations());
    });
}
