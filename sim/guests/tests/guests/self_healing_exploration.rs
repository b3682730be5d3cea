//! The self-healing controller under faults that the seed chooses, and under one fault at every fifth request in
//! turn.

use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::Fault;
use sindri_guests::harness::{FaultKind, POD, RequestFault, World, is_guest_write, simulate};
use sindri_guests::object::name;
use sindri_guests::self_healing::{AGENT, CHILDREN, Child, MODEL_CONFIG, RESYNC, Variant};
use sindri_world::engine::EngineKind;
use sindri_world::rng::SeededRng;
use sindri_world::trace;

use crate::self_healing_support::{
    API, NAMESPACE, NODES, add_key, add_model, add_oracles, agent, change_key, change_model, check_converged, child_of,
    declare, edit_agent, start,
};

const FAULTS: [FaultKind; 4] =
    [FaultKind::KillAgent, FaultKind::ApiErrors, FaultKind::DropResponse, FaultKind::Partition];
const NAMES: [&str; 2] = ["bot", "helper"];
const MODELS: [&str; 2] = ["small", "large"];
const SEEDS: u64 = 10;
/// One of so many requests gets a fault in turn: a number without a common factor with the number of faults.
const STEP: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// Time limit of convergence after the last fault.
const CONVERGES_WITHIN: Duration = Duration::from_secs(RESYNC.as_secs() + 120);

/// Ends all faults, and returns everything that is wrong then.
fn find_problems(world: &mut World) -> Vec<String> {
    world.end_faults();
    let has_converged = world.advance_until_written(CONVERGES_WITHIN, |world| check_converged(world).is_ok());
    let mut problems = world.violations().to_vec();
    problems.extend(check_converged(world).err());
    if has_converged {
        // The resync mends what was missed; then nothing is written.
        world.advance(RESYNC + MINUTE / 6);
        let from = world.writes(API).len();
        world.advance(RESYNC + MINUTE / 6);
        problems.extend(check_converged(world).err());
        if world.writes(API)[from..].iter().any(is_guest_write) {
            problems.push("the controller keeps writing".to_owned());
        }
    }
    problems
}

/// A random change by a user, or a failure of a pod or a node.
fn change_randomly(world: &mut World, rng: &mut SeededRng) {
    let bot = NAMES[rng.between(0, 1) as usize];
    let model = MODELS[rng.between(0, 1) as usize];
    let number = rng.between(1, 4);
    if agent(world, bot).is_none() {
        return declare(world, bot, model);
    }
    match rng.between(0, 10) {
        0 => world.compact_history(API),
        1 => {
            world.delete(API, AGENT, NAMESPACE, bot);
            if number > 2 {
                declare(world, bot, model);
            }
        }
        2 => remove(world, CHILDREN[rng.between(0, 3) as usize], bot),
        3 => change_key(world, &format!("{model}-key"), &format!("key-{number}")),
        4 => change_model(world, model, &format!("{model}-{number}")),
        5 => {
            world.delete(API, MODEL_CONFIG, NAMESPACE, model);
            add_model(world, model, &format!("{model}-key"));
        }
        6 => {
            let pod = world.list(API, POD).first().map(|pod| name(pod).to_owned());
            pod.iter().for_each(|pod| world.delete(API, POD, NAMESPACE, pod));
        }
        7 => {
            let node = NODES[rng.between(0, 1) as usize];
            world.fail_node(API, node);
            world.repair_node(API, node);
        }
        8 => edit_agent(world, bot, |spec| toggle_port(spec, number)),
        9 => edit_agent(world, bot, |spec| spec["modelConfig"] = json!(model)),
        _ => edit_agent(world, bot, |spec| spec["replicas"] = json!(number)),
    }
}

/// Removes the port of an agent, or adds one.
fn toggle_port(spec: &mut Value, port: u64) {
    let is_removed = spec.as_object_mut().is_some_and(|spec| spec.remove("port").is_some());
    if !is_removed {
        spec["port"] = json!(port);
    }
}

/// Deletes a child, if it exists.
fn remove(world: &mut World, child: Child, agent: &str) {
    if let Some(object) = child_of(world, child, agent) {
        world.delete(API, child.kind(), NAMESPACE, name(&object));
    }
}

/// Runs some minutes of random changes and faults; returns the problems and the trace.
fn explore(engine: EngineKind, seed: u64, variant: Variant) -> (Vec<String>, Vec<String>) {
    simulate(engine, seed, |world| {
        start(world, variant);
        add_oracles(world);
        world.begin_faults(&FAULTS);
        let mut rng = SeededRng::new(seed, "people");
        let end = world.now() + 3 * MINUTE;
        while world.now() < end {
            change_randomly(world, &mut rng);
            world.advance(Duration::from_millis(rng.between(100, 15_000)));
        }
        (find_problems(world), trace::take().lines().to_vec())
    })
}

/// A change by a user.
type Change = fn(&mut World);

/// The changes of the scenario, each with its second after the start.
const SCENARIO: [(u64, Change); 5] = [
    (1, |world| {
        declare(world, "bot", "small");
        edit_agent(world, "bot", |spec| spec["replicas"] = json!(1));
    }),
    (6, |world| {
        add_key(world, "new-key", "new");
        world.edit(API, MODEL_CONFIG, NAMESPACE, "small", |object| object["spec"]["secret"] = json!("new-key"));
    }),
    (12, |world| remove(world, Child::Deployment, "bot")),
    (18, |world| edit_agent(world, "bot", |spec| toggle_port(spec, 80))),
    (24, |world| {
        world.delete(API, AGENT, NAMESPACE, "bot");
        declare(world, "bot", "large");
        edit_agent(world, "bot", |spec| spec["replicas"] = json!(1));
    }),
];

/// Returns the fault of a request: each of the four in turn.
fn fault_of(number: usize) -> RequestFault {
    let faults = [
        RequestFault { fault: Some(Fault::CutBeforeCommit), kill: true },
        RequestFault { fault: Some(Fault::LoseResponse), kill: true },
        RequestFault { fault: Some(Fault::LoseResponse), kill: false },
        RequestFault { fault: Some(Fault::Refuse { status: 503, retry_after_secs: None }), kill: false },
    ];
    faults[number % faults.len()].clone()
}

/// Runs the scenario with a fault of one request (0: of none); returns the number of requests and the problems.
fn run_scenario(number: usize) -> (usize, Vec<String>) {
    simulate(EngineKind::Fast, number as u64, |world| {
        start(world, Variant::Correct);
        add_oracles(world);
        if number > 0 {
            world.inject_at(API, number, fault_of(number));
        }
        let begin = world.now();
        for (at, change) in SCENARIO {
            world.advance((begin + Duration::from_secs(at)).saturating_sub(world.now()));
            change(world);
        }
        world.advance(MINUTE / 3);
        (world.request_count(API), find_problems(world))
    })
}

#[test]
fn a_fault_at_every_fifth_request_leaves_every_agent_as_declared() {
    let (requests, problems) = run_scenario(0);
    assert_eq!(problems, Vec::<String>::new());
    assert!(requests > 100, "there are only {requests} requests");
    for number in (1..=requests).step_by(STEP) {
        let (_, problems) = run_scenario(number);
        assert_eq!(problems, Vec::<String>::new(), "{:?} at request {number}", fault_of(number));
    }
}

#[test]
fn random_faults_leave_every_agent_as_declared() {
    let runs = (1..=SEEDS).map(|seed| (EngineKind::Fast, seed)).chain([(EngineKind::Turmoil, 1)]);
    let mut traces = Vec::new();
    for (engine, seed) in runs {
        let (problems, trace) = explore(engine, seed, Variant::Correct);
        assert_eq!(problems, Vec::<String>::new(), "{} engine, seed {seed}", engine.name());
        traces.extend(trace);
    }
    // Without faults the test would prove nothing.
    for fault in ["~ kill", "~ partition", "~ node", " 503", " cut"] {
        let count = traces.iter().filter(|line| line.contains(fault)).count();
        assert!(count as u64 > SEEDS / 2, "{fault:?} occurred only {count} times");
    }
}

#[test]
fn random_faults_reveal_mistakes_too() {
    let revealed = [
        (Variant::KeepsUndeclaredChildren, "desired state"),
        (Variant::IgnoresUid, "early status"),
        (Variant::OmitsOwnerReference, "foreign object touched"),
        (Variant::PendingAtEachRepair, "set back"),
    ];
    for (variant, problem) in revealed {
        let found = (1..=5 * SEEDS).find_map(|seed| {
            let problems = explore(EngineKind::Fast, seed, variant).0;
            problems.into_iter().find(|found| found.contains(problem)).map(|found| (seed, found))
        });
        assert!(found.is_some(), "no seed reveals that {variant:?}");
        println!("{variant:?}: {found:?}");
    }
}
