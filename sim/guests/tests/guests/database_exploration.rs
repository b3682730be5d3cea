//! The Database controller under faults that the seed chooses, and under one fault at each request in turn. The correct
//! variant ends with one set of children for each database; the mistakes of the others are found.

use std::time::Duration;

use sindri_apiserver::Fault;
use sindri_guests::database::{CHILDREN, Child, ChildNames, Comparison, DATABASE, StatusOrder, UpdateMode, Variant};
use sindri_guests::harness::{World, simulate};
use sindri_guests::object::{is_deleting, name};
use sindri_world::engine::EngineKind;
use sindri_world::exploration::{FaultKind, RequestFault};
use sindri_world::rng::SeededRng;
use sindri_world::trace;

use crate::database_support::{
    API, NAMESPACE, add_controller, add_oracles, check_converged, declare, edit_children, managed, scale,
};

const FAULTS: [FaultKind; 4] =
    [FaultKind::KillAgent, FaultKind::ApiErrors, FaultKind::DropResponse, FaultKind::Partition];
const NAMES: [&str; 3] = ["shop", "bank", "mill"];
const SEEDS: u64 = 20;
const MINUTE: Duration = Duration::from_secs(60);
/// Time limit of convergence after the last fault.
const CONVERGES_WITHIN: Duration = Duration::from_secs(6 * 60);

/// Ends all faults, and returns everything that is wrong then.
fn find_problems(world: &mut World) -> Vec<String> {
    world.end_faults();
    let has_converged = world.advance_until_written(CONVERGES_WITHIN, |world| check_converged(world).is_ok());
    let mut problems = world.violations().to_vec();
    if !has_converged {
        problems.extend(check_converged(world).err());
        return problems;
    }
    let before = count_changes(world);
    world.advance(6 * MINUTE);
    problems.extend(check_converged(world).err());
    if count_changes(world) > before {
        problems.push("the controller keeps writing".to_owned());
    }
    problems
}

/// Returns the number of requests that change something, or would if it were not so already.
fn count_changes(world: &World) -> usize {
    ["POST", "PUT", "DELETE"].into_iter().map(|method| world.requests(API, method).len()).sum()
}

/// A random change by a user.
fn change_randomly(world: &mut World, rng: &mut SeededRng) {
    let database = NAMES[rng.between(0, 2) as usize];
    let existing = world.get(API, DATABASE, NAMESPACE, database).filter(|database| !is_deleting(database));
    match (existing.is_some(), rng.between(0, 9)) {
        (false, _) => declare(world, database),
        (true, 0) => world.compact_history(API),
        (true, 1) => world.delete(API, DATABASE, NAMESPACE, database),
        (true, 2..=3) => {
            remove(world, CHILDREN[rng.between(0, 2) as usize]);
        }
        (true, _) => scale(world, database, rng.between(0, 5)),
    }
}

/// Runs some minutes of random changes, faults and writes of another client; returns the problems and the trace.
fn explore(engine: EngineKind, seed: u64, variant: Variant) -> (Vec<String>, Vec<String>) {
    simulate(engine, seed, |world| {
        add_controller(world, variant);
        add_oracles(world);
        world.begin_faults(&FAULTS);
        let mut rng = SeededRng::new(seed, "people");
        let end = world.now() + 5 * MINUTE;
        let (mut next, mut requests) = (world.now(), 0);
        while world.now() < end {
            if world.now() >= next {
                change_randomly(world, &mut rng);
                next = world.now() + Duration::from_millis(rng.between(100, 20_000));
            }
            world.step(next.min(end));
            let count = world.request_count(API);
            if count > requests && rng.chance(1, 15) {
                edit_children(world, count as u64);
            }
            requests = count;
        }
        (find_problems(world), trace::take().lines().to_vec())
    })
}

/// A fault or a write of another client at one request.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// The controller is killed before the request is executed.
    KillBefore,
    /// The controller is killed after the request is executed, before the response.
    KillAfter,
    /// The request is executed, and the response is lost.
    ResponseLost,
    /// The server responds with 503.
    Unavailable,
    /// Another client writes.
    OtherWrite,
}

const DISTURBANCES: [Disturbance; 5] = [
    Disturbance::OtherWrite,
    Disturbance::ResponseLost,
    Disturbance::KillBefore,
    Disturbance::KillAfter,
    Disturbance::Unavailable,
];

fn inject(world: &mut World, disturbance: Disturbance, number: usize) {
    let choice = match disturbance {
        Disturbance::KillBefore => RequestFault { fault: Some(Fault::CutBeforeCommit), kill: true },
        Disturbance::KillAfter => RequestFault { fault: Some(Fault::LoseResponse), kill: true },
        Disturbance::ResponseLost => RequestFault { fault: Some(Fault::LoseResponse), kill: false },
        Disturbance::Unavailable => {
            RequestFault { fault: Some(Fault::Refuse { status: 503, retry_after_secs: None }), kill: false }
        }
        Disturbance::OtherWrite => return,
    };
    world.inject_at(API, number, choice);
}

/// A change by a user.
type Change = fn(&mut World);

/// The changes of the scenario, each with its second.
const SCENARIO: [(u64, Change); 5] = [
    (1, |world| declare(world, "shop")),
    (10, |world| declare(world, "mill")),
    (30, |world| scale(world, "shop", 2)),
    (50, |world| remove(world, Child::Service)),
    (70, |world| world.delete(API, DATABASE, NAMESPACE, "mill")),
];

/// Deletes the first child of a kind, if there is one.
fn remove(world: &mut World, child: Child) {
    if let Some(object) = managed(world, child).first() {
        world.delete(API, child.kind(), NAMESPACE, name(object));
    }
}

/// Runs the scenario with a disturbance at one request; returns the number of requests and the problems.
fn run_scenario(variant: Variant, disturbance: Disturbance, number: usize) -> (usize, Vec<String>) {
    simulate(EngineKind::Fast, number as u64, |world| {
        add_controller(world, variant);
        add_oracles(world);
        inject(world, disturbance, number);
        let mut has_written = !matches!(disturbance, Disturbance::OtherWrite);
        for (at, change) in SCENARIO {
            while world.now() < Duration::from_secs(at) {
                world.step(Duration::from_secs(at));
                if !has_written && world.request_count(API) >= number {
                    has_written = true;
                    edit_children(world, 1);
                }
            }
            change(world);
        }
        world.advance(MINUTE / 3);
        (world.request_count(API), find_problems(world))
    })
}

/// Returns the problems of each disturbance at each request in turn.
fn disturb_every_request(variant: Variant) -> impl Iterator<Item = String> {
    let (requests, problems) = run_scenario(variant, Disturbance::Unavailable, usize::MAX);
    assert!(requests > 20, "there are only {requests} requests");
    let each =
        DISTURBANCES.into_iter().flat_map(move |disturbance| (1..=requests).map(move |number| (disturbance, number)));
    let found = each.flat_map(move |(disturbance, number)| {
        let problems = run_scenario(variant, disturbance, number).1;
        problems.into_iter().map(move |problem| format!("{disturbance:?} at request {number}: {problem}"))
    });
    problems.into_iter().chain(found)
}

#[test]
fn any_fault_at_any_request_leaves_one_set_of_children() {
    assert_eq!(disturb_every_request(Variant::default()).collect::<Vec<String>>(), Vec::<String>::new());
}

#[test]
fn random_faults_leave_one_set_of_children_for_each_database() {
    let runs = (1..=SEEDS).map(|seed| (EngineKind::Fast, seed)).chain([(EngineKind::Turmoil, 1)]);
    let mut traces = Vec::new();
    for (engine, seed) in runs {
        let (problems, trace) = explore(engine, seed, Variant::default());
        assert_eq!(problems, Vec::<String>::new(), "{} engine, seed {seed}", engine.name());
        traces.extend(trace);
    }
    // Without faults the test would prove nothing.
    for fault in ["~ kill", "~ partition", " 409", " 503", " cut"] {
        let count = traces.iter().filter(|line| line.contains(fault)).count();
        assert!(count as u64 > SEEDS / 2, "{fault:?} occurred only {count} times");
    }
}

/// Asserts that both the random faults and the disturbances reveal a mistake.
fn assert_found(variant: Variant, what: &str) {
    let by_seed =
        (1..=SEEDS).find(|seed| explore(EngineKind::Fast, *seed, variant).0.iter().any(|found| found.contains(what)));
    let at_request = disturb_every_request(variant).find(|found| found.contains(what));
    assert!(by_seed.is_some(), "no seed of {SEEDS} found {what:?}");
    assert!(at_request.is_some(), "no disturbance reveals {what:?}");
    println!("{what}: seed {by_seed:?}, {at_request:?}");
}

#[test]
fn generated_names_are_found_to_create_duplicate_children() {
    assert_found(Variant { names: ChildNames::Generated, ..Variant::default() }, "has 2 children");
}

#[test]
fn updates_without_a_resource_version_are_found_to_lose_changes() {
    assert_found(Variant { updates: UpdateMode::Blind, ..Variant::default() }, "lost update");
}

#[test]
fn a_status_written_first_is_found_to_be_untrue() {
    assert_found(Variant { status: StatusOrder::First, ..Variant::default() }, "early status");
}

#[test]
fn a_comparison_with_the_defaults_of_the_server_is_found_to_update_without_end() {
    assert_found(Variant { comparison: Comparison::Whole, ..Variant::default() }, "keeps writing");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        simulate(EngineKind::Fast, seed, |world| {
            add_controller(world, Variant::default());
            world.begin_faults(&FAULTS);
            NAMES.iter().for_each(|name| declare(world, name));
            world.advance(3 * MINUTE);
            trace::take().hash()
        })
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
