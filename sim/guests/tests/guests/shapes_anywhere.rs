//! The shapes controllers under faults that the seed chooses, in both API servers: no scheme leaks, none touches what
//! belongs to others, and the wrong ones are found out.

use std::time::Duration;

use serde_json::json;
use sindri_guests::client::is_deleting;
use sindri_guests::harness::play;
use sindri_guests::shapes::{ByName, Checkpoint, Labels, Records, Sight, THING};
use sindri_world::engine::EngineKind;
use sindri_world::exploration::FaultKind;
use sindri_world::rng::SeededRng;

use crate::things::{CLOUD, Candidate, PLACE, Place, right};

const FAULTS: [FaultKind; 4] =
    [FaultKind::KillAgent, FaultKind::ApiErrors, FaultKind::DropResponse, FaultKind::Partition];
const NAMES: [&str; 4] = ["apple", "plum", "pear", "fig"];
const COLOURS: [&str; 3] = ["red", "green", "blue"];
const SEEDS: u64 = 15;
const MINUTE: Duration = Duration::from_secs(60);
/// How long it may take until everything is well after the last fault.
const CONVERGES_WITHIN: Duration = Duration::from_secs(4 * 60);

/// Something that people do, in the cluster or behind the controller's back.
fn act(place: &mut Place<'_>, dice: &mut SeededRng) {
    let which = NAMES[dice.between(0, 3) as usize];
    let colour = COLOURS[dice.between(0, 2) as usize];
    let there = place.declaration(which);
    let is_leaving = there.as_ref().is_some_and(is_deleting);
    let thing = place.made().into_keys().next();
    match dice.between(0, 9) {
        _ if there.is_none() => place.declare(which, colour),
        _ if is_leaving => {}
        0..=2 => place.undeclare(which),
        3 => thing.iter().for_each(|thing| place.world.delete(CLOUD, THING, PLACE, thing)),
        4 => thing.iter().for_each(|thing| {
            place.world.change(CLOUD, THING, PLACE, thing, |thing| thing["data"]["colour"] = json!("grey"));
        }),
        _ => place.recolour(which, colour),
    }
}

fn explore(arm: EngineKind, seed: u64, candidate: &Candidate) -> Vec<String> {
    play(arm, seed, |world| {
        let mut place = Place::new(world, candidate);
        place.world.begin_faults(&FAULTS);
        let mut dice = SeededRng::new(seed, "people");
        let end = place.world.now() + 5 * MINUTE;
        while place.world.now() < end {
            act(&mut place, &mut dice);
            place.world.advance(Duration::from_millis(dice.between(100, 20_000)));
        }
        place.world.end_faults();
        if let Err(wrong) = place.settle(CONVERGES_WITHIN) {
            return place.world.violations().iter().cloned().chain([wrong]).collect();
        }
        place.world.advance(2 * MINUTE);
        let mut wrong = place.world.violations().to_vec();
        wrong.extend(place.settled().err());
        wrong
    })
}

#[test]
fn faults_of_any_seed_leave_nothing_behind_whatever_the_scheme() {
    for candidate in right() {
        for seed in 1..=SEEDS {
            assert_eq!(explore(EngineKind::Fast, seed, &candidate), Vec::<String>::new(), "{candidate:?}, seed {seed}");
        }
        assert_eq!(explore(EngineKind::Turmoil, 1, &candidate), Vec::<String>::new(), "{candidate:?}, turmoil");
    }
}

#[test]
fn faults_of_some_seed_show_what_is_wrong_with_each_naive_controller() {
    let naive = [
        (Candidate::new(Labels, Sight::Events), "leak"),
        (Candidate::new(Labels, Sight::Once), "missing"),
        (Candidate::new(Labels, Sight::Once), "drift"),
        (Candidate::new(ByName, Sight::Events), "foreign"),
        (Candidate::new(Checkpoint { records: Records::Last }, Sight::Always), "leak"),
    ];
    for (candidate, what) in naive {
        let seeds = 1..=10 * SEEDS;
        let found = seeds.into_iter().find_map(|seed| {
            let found = explore(EngineKind::Fast, seed, &candidate);
            found.into_iter().find(|found| found.contains(what)).map(|found| (seed, found))
        });
        assert!(found.is_some(), "no seed shows that {candidate:?} has a {what}");
        println!("{candidate:?}: {found:?}");
    }
}
