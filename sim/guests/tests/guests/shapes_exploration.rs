//! The shapes controller under faults that the seed chooses, in both API servers: no scheme leaks, none changes resources
//! of other clients, and the mistakes of the wrong variants are found.

use std::time::Duration;

use serde_json::json;
use sindri_guests::harness::simulate;
use sindri_guests::object::is_deleting;
use sindri_guests::shapes::{ByName, Checkpoint, Exclusive, Labels, RESOURCE, RecordForm, RecordTiming, ResyncMode};
use sindri_world::engine::EngineKind;
use sindri_world::exploration::FaultKind;
use sindri_world::rng::SeededRng;

use crate::shapes_support::{CLOUD, Candidate, Fixture, NAMESPACE, correct_candidates};

const FAULTS: [FaultKind; 4] =
    [FaultKind::KillAgent, FaultKind::ApiErrors, FaultKind::DropResponse, FaultKind::Partition];
const NAMES: [&str; 4] = ["apple", "plum", "pear", "fig"];
const COLOURS: [&str; 3] = ["red", "green", "blue"];
const SEEDS: u64 = 15;
const MINUTE: Duration = Duration::from_secs(60);
/// Time limit of convergence after the last fault.
const CONVERGES_WITHIN: Duration = Duration::from_secs(4 * 60);

/// A random change by a user, in the cluster or in the external API.
fn change_randomly(fixture: &mut Fixture<'_>, rng: &mut SeededRng) {
    let name = NAMES[rng.between(0, 3) as usize];
    let colour = COLOURS[rng.between(0, 2) as usize];
    let existing = fixture.shape(name);
    let is_deleting_shape = existing.as_ref().is_some_and(is_deleting);
    let resource = fixture.created().into_keys().next();
    match rng.between(0, 9) {
        _ if existing.is_none() => fixture.create_shape(name, colour),
        _ if is_deleting_shape => {}
        0..=2 => fixture.delete_shape(name),
        3 => resource.iter().for_each(|resource| fixture.world.delete(CLOUD, RESOURCE, NAMESPACE, resource)),
        4 => resource.iter().for_each(|resource| {
            fixture
                .world
                .edit(CLOUD, RESOURCE, NAMESPACE, resource, |resource| resource["data"]["colour"] = json!("grey"));
        }),
        _ => fixture.recolour(name, colour),
    }
}

fn explore(engine: EngineKind, seed: u64, candidate: &Candidate) -> Vec<String> {
    simulate(engine, seed, |world| explore_in(Fixture::new(world, candidate), seed))
}

/// Runs some minutes of random changes and faults; returns the problems.
fn explore_in(mut fixture: Fixture<'_>, seed: u64) -> Vec<String> {
    fixture.world.begin_faults(&FAULTS);
    let mut rng = SeededRng::new(seed, "people");
    let end = fixture.world.now() + 5 * MINUTE;
    while fixture.world.now() < end {
        change_randomly(&mut fixture, &mut rng);
        fixture.world.advance(Duration::from_millis(rng.between(100, 20_000)));
    }
    fixture.world.end_faults();
    if let Err(problem) = fixture.await_converged(CONVERGES_WITHIN) {
        return fixture.world.violations().iter().cloned().chain([problem]).collect();
    }
    fixture.world.advance(2 * MINUTE);
    let mut problems = fixture.world.violations().to_vec();
    problems.extend(fixture.check_converged().err());
    problems
}

#[test]
fn random_faults_leave_no_leak_with_any_scheme() {
    for candidate in correct_candidates() {
        for seed in 1..=SEEDS {
            assert_eq!(explore(EngineKind::Fast, seed, &candidate), Vec::<String>::new(), "{candidate:?}, seed {seed}");
        }
        assert_eq!(explore(EngineKind::Turmoil, 1, &candidate), Vec::<String>::new(), "{candidate:?}, turmoil");
    }
}

#[test]
fn random_faults_leave_only_declared_resources_in_an_exclusive_api() {
    let candidate = Candidate::new(Exclusive, ResyncMode::Periodic);
    for seed in 1..=SEEDS {
        let problems = simulate(EngineKind::Fast, seed, |world| {
            explore_in(Fixture::exclusive(world, &candidate, &["apple", "default.plum"]), seed)
        });
        assert_eq!(problems, Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn random_faults_reveal_the_mistake_of_each_naive_controller() {
    let written_last = Checkpoint { timing: RecordTiming::AfterCreate, form: RecordForm::ConfigMap };
    let naive = [
        (Candidate::new(Labels, ResyncMode::EventsOnly), "leak"),
        (Candidate::new(Labels, ResyncMode::AtStart), "missing"),
        (Candidate::new(Labels, ResyncMode::AtStart), "drift"),
        (Candidate::new(ByName, ResyncMode::EventsOnly), "foreign"),
        (Candidate::new(written_last, ResyncMode::Periodic), "leak"),
        (Candidate::new(Checkpoint::before_create(RecordForm::OwnedShapeRef), ResyncMode::Periodic), "leak"),
        (Candidate::new(Exclusive, ResyncMode::Periodic), "foreign"),
    ];
    for (candidate, mistake) in naive {
        let seeds = 1..=10 * SEEDS;
        let found = seeds.into_iter().find_map(|seed| {
            let found = explore(EngineKind::Fast, seed, &candidate);
            found.into_iter().find(|found| found.contains(mistake)).map(|found| (seed, found))
        });
        assert!(found.is_some(), "no seed reveals the {mistake} of {candidate:?}");
        println!("{candidate:?}: {found:?}");
    }
}
