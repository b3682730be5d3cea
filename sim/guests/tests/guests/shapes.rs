//! Which things are whose: one suite for every scheme, and what it finds in those that are wrong.

use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::Fault;
use sindri_guests::client::text;
use sindri_guests::harness::play;
use sindri_guests::shapes::{
    ByName, Checkpoint, Finalizer, Labels, Prefix, REPORT, RESYNC, Records, SHAPE, Sight, THING, has_finalizer,
};
use sindri_world::engine::EngineKind;
use sindri_world::exploration::RequestFault;

use crate::things::{CLOUD, CLUSTER, Candidate, GUEST, PLACE, Place, right};

/// A property of the suite: what is wrong with a candidate, if anything is.
type Property = fn(&mut Place<'_>) -> Result<(), String>;

const LONG_ENOUGH: Duration = Duration::from_secs(4 * RESYNC.as_secs());

/// Plays a property with a candidate; what the judges saw counts too.
fn ask(property: Property, candidate: &Candidate, arm: EngineKind, seed: u64) -> Result<(), String> {
    play(arm, seed, |world| {
        let mut place = Place::new(world, candidate);
        property(&mut place)?;
        place.world.violations().first().cloned().map_or(Ok(()), Err)
    })
}

fn holds_for_every_scheme(property: Property) {
    for candidate in right() {
        assert_eq!(ask(property, &candidate, EngineKind::Fast, 1), Ok(()), "{candidate:?}");
    }
}

fn settle(place: &mut Place<'_>) -> Result<(), String> {
    place.settle(LONG_ENOUGH)
}

/// Two things that are as declared, and every event about them has been heard.
fn two_things(place: &mut Place<'_>) -> Result<(), String> {
    place.declare("red", "red");
    place.declare("blue", "blue");
    settle(place)?;
    place.world.advance(RESYNC / 3);
    Ok(())
}

fn asserted_again(place: &mut Place<'_>) -> Result<(), String> {
    two_things(place)?;
    let thing = place.thing_name("red");
    place.world.delete(CLOUD, THING, PLACE, &thing);
    settle(place)
}

fn foreign_left_alone(place: &mut Place<'_>) -> Result<(), String> {
    // Somebody else took the name first, as far as the scheme allows anybody to.
    place.world.kill(GUEST);
    place.declare("apple", "green");
    let wanted = place.thing_name("apple");
    let is_free = place.thing(&wanted).is_none();
    let belongs_to_prefix = wanted.starts_with("shape.");
    if is_free && !belongs_to_prefix {
        place.put_foreign(&wanted);
    }
    let foreign = |place: &mut Place<'_>| -> Vec<Option<Value>> {
        ["apple", "default.apple", "shapes", "kube-root-ca.crt"].map(|name| place.thing(name)).into()
    };
    let before = foreign(place);
    place.world.restart(GUEST);
    place.world.advance(LONG_ENOUGH);
    let declaration = place.declaration("apple").unwrap();
    let phase = if belongs_to_prefix { "Made" } else { "Blocked" };
    if declaration["status"]["phase"] != phase {
        return Err(format!("foreign thing taken for ours: {}", declaration["status"]));
    }
    place.undeclare("apple");
    place.world.advance(LONG_ENOUGH);
    if foreign(place) != before {
        return Err("foreign thing touched".to_owned());
    }
    settle(place)
}

fn found_after_having_been_down(place: &mut Place<'_>) -> Result<(), String> {
    two_things(place)?;
    place.world.kill(GUEST);
    place.undeclare("red");
    place.recolour("blue", "navy");
    place.world.advance(RESYNC);
    assert_eq!(place.made().len(), 2, "nobody is there to remove it");
    place.world.restart(GUEST);
    settle(place)
}

fn drift_noticed(place: &mut Place<'_>) -> Result<(), String> {
    two_things(place)?;
    let thing = place.thing_name("red");
    place.world.change(CLOUD, THING, PLACE, &thing, |thing| thing["data"]["colour"] = json!("pink"));
    settle(place)
}

fn wants_change(place: &mut Place<'_>) -> Result<(), String> {
    two_things(place)?;
    place.recolour("red", "crimson");
    settle(place)?;
    place.undeclare("blue");
    settle(place)?;
    place.declare("blue", "azure");
    settle(place)
}

/// The suite.
const SUITE: [(&str, Property); 5] = [
    ("LEAK-01", asserted_again),
    ("LEAK-02", foreign_left_alone),
    ("LEAK-03", found_after_having_been_down),
    ("LEAK-05", drift_noticed),
    ("changes", wants_change),
];

#[test]
fn what_is_removed_out_of_band_is_asserted_again() {
    holds_for_every_scheme(asserted_again);
}

#[test]
fn what_belongs_to_others_is_left_alone() {
    holds_for_every_scheme(foreign_left_alone);
}

#[test]
fn what_was_deleted_while_the_controller_was_down_is_found_and_removed() {
    holds_for_every_scheme(found_after_having_been_down);
}

#[test]
fn drift_after_the_first_list_is_noticed() {
    holds_for_every_scheme(drift_noticed);
}

#[test]
fn every_scheme_passes_the_same_suite() {
    for candidate in right() {
        for (id, property) in SUITE {
            for (arm, seed) in [(EngineKind::Fast, 2), (EngineKind::Fast, 3), (EngineKind::Turmoil, 2)] {
                assert_eq!(ask(property, &candidate, arm, seed), Ok(()), "{id}, {candidate:?}, {}", arm.name());
            }
        }
    }
}

/// A thing is made and one is removed; at a request to one of the API servers the controller dies. While it is down,
/// both declarations go, or stay. `None` if there was no such request.
fn dies(candidate: &Candidate, api: &str, number: usize, fault: &Fault, goes: bool) -> Option<Result<(), String>> {
    play(EngineKind::Fast, number as u64, |world| {
        let mut place = Place::new(world, candidate);
        place.declare("blue", "blue");
        settle(&mut place).unwrap();
        let before = place.world.request_count(api);
        let choice = RequestFault { fault: Some(fault.clone()), kill: true };
        place.world.inject_at(api, before + number, choice);
        place.declare("red", "red");
        place.undeclare("blue");
        let died = place.world.advance_until(2 * RESYNC, |world| world.is_dead(GUEST));
        if !died {
            return None;
        }
        if goes {
            place.undeclare("red");
        }
        Some(settle(&mut place))
    })
}

/// What is left wrong after a death at each request in turn.
fn every_death(candidate: &Candidate) -> Vec<String> {
    let mut wrong = Vec::new();
    for (api, fault, goes) in [CLUSTER, CLOUD].into_iter().flat_map(|api| {
        let faults = [Fault::CutBeforeCommit, Fault::LoseResponse].into_iter();
        faults.flat_map(move |fault| [true, false].map(|goes| (api, fault.clone(), goes)))
    }) {
        let deaths = (1..).map_while(|number| dies(candidate, api, number, &fault, goes));
        let deaths: Vec<Result<(), String>> = deaths.collect();
        assert!(deaths.len() > 3, "there were only {} requests to {api}", deaths.len());
        let numbered = deaths.into_iter().enumerate().filter_map(|(at, death)| death.err().map(|what| (at + 1, what)));
        wrong.extend(numbered.map(|(at, what)| format!("{api}, request {at}, {fault:?}, goes: {goes}: {what}")));
    }
    wrong
}

#[test]
fn a_crash_at_any_request_leaves_nothing_that_the_next_pass_does_not_settle() {
    for candidate in right() {
        assert_eq!(every_death(&candidate), Vec::<String>::new(), "{candidate:?}");
    }
}

#[test]
fn the_record_of_a_thing_is_there_before_the_thing() {
    let candidate = Candidate::new(Checkpoint { records: Records::First }, Sight::Always);
    play(EngineKind::Fast, 4, |world| {
        let mut place = Place::new(world, &candidate);
        place.world.fail(CLOUD, "POST configmaps", Fault::CutBeforeCommit, None);
        place.declare("red", "red");
        let asked = |world: &mut sindri_guests::harness::World| !world.asked(CLOUD, "POST configmaps").is_empty();
        assert!(place.world.advance_until(RESYNC, asked));
        place.world.kill(GUEST);
        let record = format!("record.{}", place.thing_name("red"));
        assert!(place.world.get(CLUSTER, THING, PLACE, &record).is_some());
        assert!(place.made().is_empty());
        place.undeclare("red");
        place.world.heal(CLOUD);
        place.world.restart(GUEST);
        assert_eq!(settle(&mut place), Ok(()));
        assert!(place.world.get(CLUSTER, THING, PLACE, &record).is_none(), "the record is forgotten");
    });
}

#[test]
fn a_held_declaration_goes_only_after_its_thing() {
    for arm in EngineKind::ALL {
        play(arm, 5, |world| {
            let mut place = Place::new(world, &Candidate::new(Finalizer, Sight::Always));
            two_things(&mut place).unwrap();
            // While the controller is down, the deletion is pending.
            place.world.kill(GUEST);
            place.undeclare("red");
            place.world.advance(LONG_ENOUGH);
            assert!(place.declaration("red").is_some_and(|declaration| has_finalizer(&declaration)));
            // While removing fails, it stays so, and is tried again and again.
            place.world.fail(CLOUD, "DELETE", Fault::Refuse { status: 503, retry_after_secs: None }, None);
            place.world.restart(GUEST);
            place.world.advance(LONG_ENOUGH);
            assert!(place.declaration("red").is_some_and(|declaration| has_finalizer(&declaration)));
            assert_eq!(place.made().len(), 2);
            let tries = place.world.asked(CLOUD, "DELETE").len();
            assert!((3..=12).contains(&tries), "{tries} tries");
            place.world.heal(CLOUD);
            settle(&mut place).unwrap();
            assert!(place.declaration("red").is_none());
        });
    }
}

/// What a user can take away, by the scheme that needs it.
fn strip(place: &mut Place<'_>, shape: &str) {
    let thing = place.thing_name(shape);
    let scheme = place.candidate.scheme.clone();
    if scheme.holds() {
        place.world.change(CLUSTER, SHAPE, PLACE, shape, |shape| shape["metadata"]["finalizers"] = json!([]));
    } else if scheme.records() == Records::First {
        place.world.delete(CLUSTER, THING, PLACE, &format!("record.{thing}"));
    } else {
        place.world.change(CLOUD, THING, PLACE, &thing, |thing| thing["metadata"]["labels"] = json!({}));
    }
}

#[test]
fn what_lost_its_marks_is_reported_and_nothing_else_suffers() {
    for candidate in right().into_iter().skip(1) {
        play(EngineKind::Fast, 6, |world| {
            let mut place = Place::new(world, &candidate);
            two_things(&mut place).unwrap();
            let thing = place.thing_name("red");
            place.world.kill(GUEST);
            strip(&mut place, "red");
            place.undeclare("red");
            place.world.restart(GUEST);
            place.world.advance(LONG_ENOUGH);
            assert!(place.thing(&thing).is_some(), "{candidate:?}: what cannot be proved to be ours is not removed");
            let report = place.world.get(CLUSTER, THING, PLACE, REPORT).unwrap();
            assert_eq!(text(&report, "/data/leaks"), thing, "{candidate:?}");
            // Everything else goes on; and when somebody has cleaned up, nothing is reported any more.
            place.recolour("blue", "navy");
            place.declare("green", "green");
            place.world.delete(CLOUD, THING, PLACE, &thing);
            assert_eq!(settle(&mut place), Ok(()), "{candidate:?}");
            place.world.advance(LONG_ENOUGH);
            let report = place.world.get(CLUSTER, THING, PLACE, REPORT).unwrap();
            assert_eq!(text(&report, "/data/leaks"), "", "{candidate:?}");
        });
    }
}

#[test]
fn marks_that_a_user_strips_from_what_is_declared_come_back() {
    for candidate in right().into_iter().skip(1) {
        play(EngineKind::Fast, 7, |world| {
            let mut place = Place::new(world, &candidate);
            two_things(&mut place).unwrap();
            place.world.kill(GUEST);
            strip(&mut place, "red");
            place.world.restart(GUEST);
            place.world.advance(LONG_ENOUGH);
            // With its marks it is known again: it goes with its declaration.
            place.undeclare("red");
            assert_eq!(settle(&mut place), Ok(()), "{candidate:?}");
            assert_eq!(place.made().len(), 1, "{candidate:?}");
        });
    }
}

#[test]
fn a_name_cannot_be_stripped_and_without_any_note_it_is_still_ours() {
    play(EngineKind::Fast, 8, |world| {
        let mut place = Place::new(world, &Candidate::new(Prefix, Sight::Always));
        two_things(&mut place).unwrap();
        let thing = place.thing_name("red");
        place.world.kill(GUEST);
        place.world.change(CLOUD, THING, PLACE, &thing, |thing| thing["metadata"]["annotations"] = json!({}));
        place.undeclare("red");
        place.world.restart(GUEST);
        assert_eq!(settle(&mut place), Ok(()));
    });
}

/// The properties of the suite that a candidate does not have.
fn failed(candidate: &Candidate) -> Vec<&'static str> {
    let failing = SUITE.iter().filter(|(_, property)| ask(*property, candidate, EngineKind::Fast, 1).is_err());
    failing.map(|(id, _)| *id).collect()
}

#[test]
fn whoever_only_listens_to_events_is_found_to_leak_what_went_while_it_was_down() {
    let found = failed(&Candidate::new(Labels, Sight::Events));
    assert_eq!(found, ["LEAK-01", "LEAK-03", "LEAK-05"]);
}

#[test]
fn whoever_lists_only_once_is_found_to_miss_drift() {
    let found = failed(&Candidate::new(Labels, Sight::Once));
    assert_eq!(found, ["LEAK-01", "LEAK-05"]);
}

#[test]
fn whoever_goes_by_names_alone_is_found_to_take_what_belongs_to_others() {
    let found = failed(&Candidate::new(ByName, Sight::Events));
    assert!(found.contains(&"LEAK-02"), "{found:?}");
}

#[test]
fn whoever_records_last_is_found_to_leak_after_a_crash() {
    let candidate = Candidate::new(Checkpoint { records: Records::Last }, Sight::Always);
    assert!(failed(&candidate).is_empty(), "without a crash it looks right");
    let found = every_death(&candidate);
    assert!(found.iter().any(|found| found.contains("leak: nobody declares")), "{found:?}");
}
