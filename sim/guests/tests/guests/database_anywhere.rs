//! The Database controller under faults at any moment: those that the seed chooses, and each moment in turn. The right
//! one ends with one set of children for each database; what is wrong with the others is found.

use std::time::Duration;

use sindri_apiserver::Fault;
use sindri_guests::client::{is_deleting, name};
use sindri_guests::database::{CHILDREN, Child, DATABASE, Manner, Names, Reports, Updates};
use sindri_guests::harness::{World, is_guests, play};
use sindri_world::engine::EngineKind;
use sindri_world::exploration::{FaultKind, RequestFault};
use sindri_world::rng::SeededRng;
use sindri_world::trace;

use crate::databases::{API, PLACE, add_judges, declare, managed, meddle, move_in, scale, settled};

const FAULTS: [FaultKind; 4] =
    [FaultKind::KillAgent, FaultKind::ApiErrors, FaultKind::DropResponse, FaultKind::Partition];
const NAMES: [&str; 3] = ["shop", "bank", "mill"];
const SEEDS: u64 = 20;
const MINUTE: Duration = Duration::from_secs(60);
/// How long it may take until everything is well after the last fault.
const CONVERGES_WITHIN: Duration = Duration::from_secs(6 * 60);

/// Ends all faults, then tells everything that is wrong.
fn verdict(world: &mut World) -> Vec<String> {
    world.end_faults();
    let is_settled = world.advance_until_written(CONVERGES_WITHIN, |world| settled(world).is_ok());
    let mut wrong = world.violations().to_vec();
    if !is_settled {
        wrong.extend(settled(world).err());
        return wrong;
    }
    let from = world.writes(API).len();
    world.advance(6 * MINUTE);
    wrong.extend(settled(world).err());
    if world.writes(API)[from..].iter().any(is_guests) {
        wrong.push("it does not come to rest".to_owned());
    }
    wrong
}

/// Something that people do.
fn act(world: &mut World, dice: &mut SeededRng) {
    let which = NAMES[dice.between(0, 2) as usize];
    let there = world.get(API, DATABASE, PLACE, which).filter(|database| !is_deleting(database));
    match (there.is_some(), dice.between(0, 9)) {
        (false, _) => declare(world, which),
        (true, 0) => world.forget_history(API),
        (true, 1) => world.delete(API, DATABASE, PLACE, which),
        (true, 2..=3) => {
            remove(world, CHILDREN[dice.between(0, 2) as usize]);
        }
        (true, _) => scale(world, which, dice.between(0, 5)),
    }
}

/// A few minutes of people, faults and somebody else who writes at the worst moments; then what is wrong, and the trace.
fn explore(arm: EngineKind, seed: u64, manner: Manner) -> (Vec<String>, Vec<String>) {
    play(arm, seed, |world| {
        move_in(world, manner);
        add_judges(world);
        world.begin_faults(&FAULTS);
        let mut dice = SeededRng::new(seed, "people");
        let end = world.now() + 5 * MINUTE;
        let (mut next, mut asked) = (world.now(), 0);
        while world.now() < end {
            if world.now() >= next {
                act(world, &mut dice);
                next = world.now() + Duration::from_millis(dice.between(100, 20_000));
            }
            world.step(next.min(end));
            let count = world.request_count(API);
            if count > asked && dice.chance(1, 15) {
                meddle(world, count as u64);
            }
            asked = count;
        }
        (verdict(world), trace::take().lines().to_vec())
    })
}

/// What happens at one moment.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The controller dies before the request is carried out.
    DiesBefore,
    /// It dies after, without the answer.
    DiesAfter,
    /// The request is carried out, and the answer is lost.
    AnswerLost,
    /// The server has no time.
    Unavailable,
    /// Somebody else writes.
    Meddled,
}

const HAPPENINGS: [Happening; 5] =
    [Happening::Meddled, Happening::AnswerLost, Happening::DiesBefore, Happening::DiesAfter, Happening::Unavailable];

fn prepare(world: &mut World, happening: Happening, number: usize) {
    let choice = match happening {
        Happening::DiesBefore => RequestFault { fault: Some(Fault::CutBeforeCommit), kill: true },
        Happening::DiesAfter => RequestFault { fault: Some(Fault::LoseResponse), kill: true },
        Happening::AnswerLost => RequestFault { fault: Some(Fault::LoseResponse), kill: false },
        Happening::Unavailable => {
            RequestFault { fault: Some(Fault::Refuse { status: 503, retry_after_secs: None }), kill: false }
        }
        Happening::Meddled => return,
    };
    world.inject_at(API, number, choice);
}

type Act = fn(&mut World);

/// What people do in the story, and at which second.
const STORY: [(u64, Act); 5] = [
    (1, |world| declare(world, "shop")),
    (10, |world| declare(world, "mill")),
    (30, |world| scale(world, "shop", 2)),
    (50, |world| remove(world, Child::Service)),
    (70, |world| world.delete(API, DATABASE, PLACE, "mill")),
];

/// Somebody deletes the first child of a kind, if there is one.
fn remove(world: &mut World, child: Child) {
    if let Some(object) = managed(world, child).first() {
        world.delete(API, child.kind(), PLACE, name(object));
    }
}

/// Databases are made, changed, damaged and deleted; something happens at one request. Also tells how many there were.
fn story(manner: Manner, happening: Happening, number: usize) -> (usize, Vec<String>) {
    play(EngineKind::Fast, number as u64, |world| {
        move_in(world, manner);
        add_judges(world);
        prepare(world, happening, number);
        let mut is_meddled = !matches!(happening, Happening::Meddled);
        for (at, act) in STORY {
            while world.now() < Duration::from_secs(at) {
                world.step(Duration::from_secs(at));
                if !is_meddled && world.request_count(API) >= number {
                    is_meddled = true;
                    meddle(world, 1);
                }
            }
            act(world);
        }
        world.advance(MINUTE / 3);
        (world.request_count(API), verdict(world))
    })
}

/// What is wrong when something happens at each request in turn.
fn every_moment(manner: Manner) -> impl Iterator<Item = String> {
    let (moments, wrong) = story(manner, Happening::Unavailable, usize::MAX);
    assert!(moments > 20, "there are only {moments} requests");
    let each = HAPPENINGS.into_iter().flat_map(move |happening| (1..=moments).map(move |number| (happening, number)));
    let found = each.flat_map(move |(happening, number)| {
        let wrong = story(manner, happening, number).1;
        wrong.into_iter().map(move |wrong| format!("{happening:?} at request {number}: {wrong}"))
    });
    wrong.into_iter().chain(found)
}

#[test]
fn whatever_happens_at_whichever_request_one_set_of_children_is_left() {
    assert_eq!(every_moment(Manner::default()).collect::<Vec<String>>(), Vec::<String>::new());
}

#[test]
fn faults_of_any_seed_end_with_one_set_of_children_for_each_database() {
    let runs = (1..=SEEDS).map(|seed| (EngineKind::Fast, seed)).chain([(EngineKind::Turmoil, 1)]);
    let mut traces = Vec::new();
    for (arm, seed) in runs {
        let (wrong, trace) = explore(arm, seed, Manner::default());
        assert_eq!(wrong, Vec::<String>::new(), "{} arm, seed {seed}", arm.name());
        traces.extend(trace);
    }
    // A world in which nothing goes wrong would prove nothing.
    for felt in ["~ kill", "~ partition", " 409", " 503", " cut"] {
        let count = traces.iter().filter(|line| line.contains(felt)).count();
        assert!(count as u64 > SEEDS / 2, "{felt:?} was felt only {count} times");
    }
}

/// Both the seeds and the moments must show it.
fn must_be_found(manner: Manner, what: &str) {
    let by_seed =
        (1..=SEEDS).find(|seed| explore(EngineKind::Fast, *seed, manner).0.iter().any(|found| found.contains(what)));
    let at_a_moment = every_moment(manner).find(|found| found.contains(what));
    assert!(by_seed.is_some(), "no seed of {SEEDS} found {what:?}");
    assert!(at_a_moment.is_some(), "no moment shows {what:?}");
    println!("{what}: seed {by_seed:?}, {at_a_moment:?}");
}

#[test]
fn a_controller_that_lets_the_server_choose_names_is_found_to_double_children() {
    must_be_found(Manner { names: Names::Generated, ..Manner::default() }, "has 2 children");
}

#[test]
fn a_controller_that_writes_blindly_is_found_to_lose_updates() {
    must_be_found(Manner { updates: Updates::Blind, ..Manner::default() }, "lost update");
}

#[test]
fn a_controller_that_reports_first_is_found_to_say_what_is_not_so() {
    must_be_found(Manner { reports: Reports::First, ..Manner::default() }, "early status");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        play(EngineKind::Fast, seed, |world| {
            move_in(world, Manner::default());
            world.begin_faults(&FAULTS);
            NAMES.iter().for_each(|name| declare(world, name));
            world.advance(3 * MINUTE);
            trace::take().hash()
        })
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
