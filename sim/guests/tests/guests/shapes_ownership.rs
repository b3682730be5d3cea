//! One suite of ownership properties for every scheme, and its findings about the wrong variants.

use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::Fault;
use sindri_guests::harness::simulate;
use sindri_guests::object::text;
use sindri_guests::shapes::{
    ByName, Checkpoint, Exclusive, Finalizer, Labels, Prefix, REPORT, RESOURCE, RESYNC, RecordForm, RecordTiming,
    ResyncMode, SHAPE, SHAPE_REF, has_finalizer,
};
use sindri_world::engine::EngineKind;
use sindri_world::exploration::RequestFault;

use crate::shapes_support::{CLOUD, CLUSTER, Candidate, Fixture, GUEST, NAMESPACE, correct_candidates};

/// A property of the suite; the error describes the violation.
type Property = fn(&mut Fixture<'_>) -> Result<(), String>;

const LONG_ENOUGH: Duration = Duration::from_secs(4 * RESYNC.as_secs());

/// Checks a property of a candidate; violations of the oracle count too.
fn check_property(property: Property, candidate: &Candidate, engine: EngineKind, seed: u64) -> Result<(), String> {
    simulate(engine, seed, |world| {
        let mut fixture = Fixture::new(world, candidate);
        property(&mut fixture)?;
        fixture.world.violations().first().cloned().map_or(Ok(()), Err)
    })
}

fn holds_for_every_scheme(property: Property) {
    for candidate in correct_candidates() {
        assert_eq!(check_property(property, &candidate, EngineKind::Fast, 1), Ok(()), "{candidate:?}");
    }
}

fn await_converged(fixture: &mut Fixture<'_>) -> Result<(), String> {
    fixture.await_converged(LONG_ENOUGH)
}

/// Creates two shapes, and waits until they are applied and all their events are processed.
fn two_resources(fixture: &mut Fixture<'_>) -> Result<(), String> {
    fixture.create_shape("red", "red");
    fixture.create_shape("blue", "blue");
    await_converged(fixture)?;
    fixture.world.advance(RESYNC / 3);
    Ok(())
}

fn recreates_deleted_resource(fixture: &mut Fixture<'_>) -> Result<(), String> {
    two_resources(fixture)?;
    let resource = fixture.resource_name("red");
    fixture.world.delete(CLOUD, RESOURCE, NAMESPACE, &resource);
    await_converged(fixture)
}

fn keeps_foreign_resources(fixture: &mut Fixture<'_>) -> Result<(), String> {
    // Another client uses the name first, if the scheme allows it.
    fixture.world.kill(GUEST);
    fixture.create_shape("apple", "green");
    let resource_name = fixture.resource_name("apple");
    let is_free = fixture.resource(&resource_name).is_none();
    let belongs_to_prefix = resource_name.starts_with("shape.");
    if is_free && !belongs_to_prefix {
        fixture.add_foreign_resource(&resource_name);
    }
    let foreign = |fixture: &mut Fixture<'_>| -> Vec<Option<Value>> {
        ["apple", "default.apple", "shapes", "kube-root-ca.crt"].map(|name| fixture.resource(name)).into()
    };
    let before = foreign(fixture);
    fixture.world.restart(GUEST);
    fixture.world.advance(LONG_ENOUGH);
    let shape = fixture.shape("apple").unwrap();
    let phase = if belongs_to_prefix { "Made" } else { "Blocked" };
    if shape["status"]["phase"] != phase {
        return Err(format!("foreign resource treated as own: {}", shape["status"]));
    }
    fixture.delete_shape("apple");
    fixture.world.advance(LONG_ENOUGH);
    if foreign(fixture) != before {
        return Err("foreign resource changed".to_owned());
    }
    await_converged(fixture)
}

fn cleans_up_after_downtime(fixture: &mut Fixture<'_>) -> Result<(), String> {
    two_resources(fixture)?;
    fixture.world.kill(GUEST);
    fixture.delete_shape("red");
    fixture.recolour("blue", "navy");
    fixture.world.advance(RESYNC);
    assert_eq!(fixture.created().len(), 2, "the controller is down");
    fixture.world.restart(GUEST);
    await_converged(fixture)
}

fn corrects_drift(fixture: &mut Fixture<'_>) -> Result<(), String> {
    two_resources(fixture)?;
    let resource = fixture.resource_name("red");
    fixture.world.edit(CLOUD, RESOURCE, NAMESPACE, &resource, |resource| resource["data"]["colour"] = json!("pink"));
    await_converged(fixture)
}

fn follows_changes(fixture: &mut Fixture<'_>) -> Result<(), String> {
    two_resources(fixture)?;
    fixture.recolour("red", "crimson");
    await_converged(fixture)?;
    fixture.delete_shape("blue");
    await_converged(fixture)?;
    fixture.create_shape("blue", "azure");
    await_converged(fixture)
}

/// The suite.
const SUITE: [(&str, Property); 5] = [
    ("LEAK-01", recreates_deleted_resource),
    ("LEAK-02", keeps_foreign_resources),
    ("LEAK-03", cleans_up_after_downtime),
    ("LEAK-05", corrects_drift),
    ("changes", follows_changes),
];

#[test]
fn a_resource_deleted_by_another_client_is_created_again() {
    holds_for_every_scheme(recreates_deleted_resource);
}

#[test]
fn resources_of_other_clients_are_not_changed() {
    holds_for_every_scheme(keeps_foreign_resources);
}

#[test]
fn a_shape_deleted_while_the_controller_was_down_is_cleaned_up() {
    holds_for_every_scheme(cleans_up_after_downtime);
}

#[test]
fn drift_after_the_first_list_is_corrected() {
    holds_for_every_scheme(corrects_drift);
}

#[test]
fn every_scheme_passes_the_same_suite() {
    for candidate in correct_candidates() {
        for (id, property) in SUITE {
            for (engine, seed) in [(EngineKind::Fast, 2), (EngineKind::Fast, 3), (EngineKind::Turmoil, 2)] {
                assert_eq!(
                    check_property(property, &candidate, engine, seed),
                    Ok(()),
                    "{id}, {candidate:?}, {}",
                    engine.name()
                );
            }
        }
    }
}

/// Creates one shape and deletes another, and kills the controller at a request to one of the API servers. While it is
/// down, the first shape is deleted or stays. None: there was no such request.
fn crash_at(
    candidate: &Candidate,
    api: &str,
    number: usize,
    fault: &Fault,
    is_deleted: bool,
) -> Option<Result<(), String>> {
    simulate(EngineKind::Fast, number as u64, |world| {
        let mut fixture = Fixture::new(world, candidate);
        fixture.create_shape("blue", "blue");
        await_converged(&mut fixture).unwrap();
        let before = fixture.world.request_count(api);
        let choice = RequestFault { fault: Some(fault.clone()), kill: true };
        fixture.world.inject_at(api, before + number, choice);
        fixture.create_shape("red", "red");
        fixture.delete_shape("blue");
        let crashed = fixture.world.advance_until(2 * RESYNC, |world| world.is_dead(GUEST));
        if !crashed {
            return None;
        }
        if is_deleted {
            fixture.delete_shape("red");
        }
        Some(await_converged(&mut fixture))
    })
}

/// Returns the problems after a crash at each request in turn.
fn crash_at_every_request(candidate: &Candidate) -> Vec<String> {
    let mut problems = Vec::new();
    for (api, fault, is_deleted) in [CLUSTER, CLOUD].into_iter().flat_map(|api| {
        let faults = [Fault::CutBeforeCommit, Fault::LoseResponse].into_iter();
        faults.flat_map(move |fault| [true, false].map(|is_deleted| (api, fault.clone(), is_deleted)))
    }) {
        let crashes = (1..).map_while(|number| crash_at(candidate, api, number, &fault, is_deleted));
        let crashes: Vec<Result<(), String>> = crashes.collect();
        assert!(crashes.len() > 3, "there were only {} requests to {api}", crashes.len());
        let numbered =
            crashes.into_iter().enumerate().filter_map(|(at, result)| result.err().map(|problem| (at + 1, problem)));
        problems
            .extend(numbered.map(|(at, problem)| {
                format!("{api}, request {at}, {fault:?}, shape deleted: {is_deleted}: {problem}")
            }));
    }
    problems
}

#[test]
fn the_next_pass_repairs_a_crash_at_any_request() {
    for candidate in correct_candidates() {
        assert_eq!(crash_at_every_request(&candidate), Vec::<String>::new(), "{candidate:?}");
    }
}

#[test]
fn the_record_of_a_resource_is_written_before_the_resource() {
    for form in [RecordForm::ConfigMap, RecordForm::ShapeRef] {
        record_is_written_first(form);
    }
}

fn record_is_written_first(form: RecordForm) {
    let candidate = Candidate::new(Checkpoint::before_create(form), ResyncMode::Periodic);
    simulate(EngineKind::Fast, 4, |world| {
        let mut fixture = Fixture::new(world, &candidate);
        fixture.world.fail_requests(CLOUD, "POST configmaps", Fault::CutBeforeCommit, None);
        fixture.create_shape("red", "red");
        let has_sent = |world: &mut sindri_guests::harness::World| !world.requests(CLOUD, "POST configmaps").is_empty();
        assert!(fixture.world.advance_until(RESYNC, has_sent));
        fixture.world.kill(GUEST);
        let record = format!("record.{}", fixture.resource_name("red"));
        assert!(fixture.world.get(CLUSTER, form.kind(), NAMESPACE, &record).is_some());
        assert!(fixture.created().is_empty());
        fixture.delete_shape("red");
        fixture.world.stop_failing(CLOUD);
        fixture.world.restart(GUEST);
        assert_eq!(await_converged(&mut fixture), Ok(()));
        assert!(fixture.world.get(CLUSTER, form.kind(), NAMESPACE, &record).is_none(), "the record is deleted");
    });
}

#[test]
fn a_shape_with_the_finalizer_is_deleted_only_after_its_resource() {
    for engine in EngineKind::ALL {
        simulate(engine, 5, |world| {
            let mut fixture = Fixture::new(world, &Candidate::new(Finalizer, ResyncMode::Periodic));
            two_resources(&mut fixture).unwrap();
            // While the controller is down, the deletion is pending.
            fixture.world.kill(GUEST);
            fixture.delete_shape("red");
            fixture.world.advance(LONG_ENOUGH);
            assert!(fixture.shape("red").is_some_and(|shape| has_finalizer(&shape)));
            // While the deletion of the resource fails, it is retried and the shape stays.
            fixture.world.fail_requests(CLOUD, "DELETE", Fault::Refuse { status: 503, retry_after_secs: None }, None);
            fixture.world.restart(GUEST);
            fixture.world.advance(LONG_ENOUGH);
            assert!(fixture.shape("red").is_some_and(|shape| has_finalizer(&shape)));
            assert_eq!(fixture.created().len(), 2);
            let attempts = fixture.world.requests(CLOUD, "DELETE").len();
            assert!((3..=12).contains(&attempts), "{attempts} attempts");
            fixture.world.stop_failing(CLOUD);
            await_converged(&mut fixture).unwrap();
            assert!(fixture.shape("red").is_none());
        });
    }
}

/// Removes the data by which the scheme proves ownership.
fn remove_ownership_data(fixture: &mut Fixture<'_>, shape: &str) {
    let resource = fixture.resource_name(shape);
    let scheme = fixture.candidate.scheme.clone();
    if scheme.uses_finalizer() {
        fixture.world.edit(CLUSTER, SHAPE, NAMESPACE, shape, |shape| shape["metadata"]["finalizers"] = json!([]));
    } else if scheme.record_timing() == RecordTiming::BeforeCreate {
        fixture.world.delete(CLUSTER, scheme.record_form().kind(), NAMESPACE, &format!("record.{resource}"));
    } else {
        fixture
            .world
            .edit(CLOUD, RESOURCE, NAMESPACE, &resource, |resource| resource["metadata"]["labels"] = json!({}));
    }
}

#[test]
fn a_resource_that_lost_its_ownership_data_is_reported_and_others_are_reconciled() {
    for candidate in correct_candidates().into_iter().skip(1) {
        simulate(EngineKind::Fast, 6, |world| {
            let mut fixture = Fixture::new(world, &candidate);
            two_resources(&mut fixture).unwrap();
            let resource = fixture.resource_name("red");
            fixture.world.kill(GUEST);
            remove_ownership_data(&mut fixture, "red");
            fixture.delete_shape("red");
            fixture.world.restart(GUEST);
            fixture.world.advance(LONG_ENOUGH);
            assert!(
                fixture.resource(&resource).is_some(),
                "{candidate:?}: a resource without proof of ownership is not deleted"
            );
            let report = fixture.world.get(CLUSTER, RESOURCE, NAMESPACE, REPORT).unwrap();
            assert_eq!(text(&report, "/data/leaks"), resource, "{candidate:?}");
            // Other shapes are reconciled, and after a user has cleaned up the report is empty.
            fixture.recolour("blue", "navy");
            fixture.create_shape("green", "green");
            fixture.world.delete(CLOUD, RESOURCE, NAMESPACE, &resource);
            assert_eq!(await_converged(&mut fixture), Ok(()), "{candidate:?}");
            fixture.world.advance(LONG_ENOUGH);
            let report = fixture.world.get(CLUSTER, RESOURCE, NAMESPACE, REPORT).unwrap();
            assert_eq!(text(&report, "/data/leaks"), "", "{candidate:?}");
        });
    }
}

#[test]
fn ownership_data_removed_by_a_user_is_restored() {
    for candidate in correct_candidates().into_iter().skip(1) {
        simulate(EngineKind::Fast, 7, |world| {
            let mut fixture = Fixture::new(world, &candidate);
            two_resources(&mut fixture).unwrap();
            fixture.world.kill(GUEST);
            remove_ownership_data(&mut fixture, "red");
            fixture.world.restart(GUEST);
            fixture.world.advance(LONG_ENOUGH);
            // The restored data proves ownership: the resource is deleted with its shape.
            fixture.delete_shape("red");
            assert_eq!(await_converged(&mut fixture), Ok(()), "{candidate:?}");
            assert_eq!(fixture.created().len(), 1, "{candidate:?}");
        });
    }
}

#[test]
fn a_name_prefix_proves_ownership_without_the_annotation() {
    simulate(EngineKind::Fast, 8, |world| {
        let mut fixture = Fixture::new(world, &Candidate::new(Prefix, ResyncMode::Periodic));
        two_resources(&mut fixture).unwrap();
        let resource = fixture.resource_name("red");
        fixture.world.kill(GUEST);
        fixture
            .world
            .edit(CLOUD, RESOURCE, NAMESPACE, &resource, |resource| resource["metadata"]["annotations"] = json!({}));
        fixture.delete_shape("red");
        fixture.world.restart(GUEST);
        assert_eq!(await_converged(&mut fixture), Ok(()));
    });
}

/// Returns the properties of the suite that a candidate violates.
fn violated(candidate: &Candidate) -> Vec<&'static str> {
    let failing =
        SUITE.iter().filter(|(_, property)| check_property(*property, candidate, EngineKind::Fast, 1).is_err());
    failing.map(|(id, _)| *id).collect()
}

#[test]
fn a_controller_that_only_watches_is_found_to_leak_shapes_deleted_while_it_was_down() {
    let found = violated(&Candidate::new(Labels, ResyncMode::EventsOnly));
    assert_eq!(found, ["LEAK-01", "LEAK-03", "LEAK-05"]);
}

#[test]
fn a_controller_that_lists_only_once_is_found_to_miss_drift() {
    let found = violated(&Candidate::new(Labels, ResyncMode::AtStart));
    assert_eq!(found, ["LEAK-01", "LEAK-05"]);
}

#[test]
fn ownership_by_name_alone_is_found_to_take_foreign_resources() {
    let found = violated(&Candidate::new(ByName, ResyncMode::EventsOnly));
    assert!(found.contains(&"LEAK-02"), "{found:?}");
}

#[test]
fn a_record_written_last_is_found_to_leak_after_a_crash() {
    let written_last = Checkpoint { timing: RecordTiming::AfterCreate, form: RecordForm::ConfigMap };
    let candidate = Candidate::new(written_last, ResyncMode::Periodic);
    assert!(violated(&candidate).is_empty(), "without a crash it passes");
    let found = crash_at_every_request(&candidate);
    assert!(found.iter().any(|found| found.contains("leak: no shape declares")), "{found:?}");
}

#[test]
fn a_record_that_the_garbage_collector_deletes_is_found_to_leak() {
    let candidate = Candidate::new(Checkpoint::before_create(RecordForm::OwnedShapeRef), ResyncMode::Periodic);
    assert_eq!(violated(&candidate), ["LEAK-03"]);
}

#[test]
fn a_dangling_shape_ref_reveals_the_deletion_of_its_shape() {
    let candidate = Candidate::new(Checkpoint::before_create(RecordForm::ShapeRef), ResyncMode::Periodic);
    simulate(EngineKind::Fast, 9, |world| {
        let mut fixture = Fixture::new(world, &candidate);
        two_resources(&mut fixture).unwrap();
        let references = |fixture: &mut Fixture<'_>| -> Vec<String> {
            let references = fixture.world.list(CLUSTER, SHAPE_REF);
            references.iter().map(|reference| text(reference, "/spec/shape").to_owned()).collect()
        };
        fixture.world.kill(GUEST);
        fixture.delete_shape("red");
        fixture.world.advance(LONG_ENOUGH);
        assert_eq!(references(&mut fixture).len(), 2, "the reference outlives its shape");
        fixture.world.restart(GUEST);
        assert_eq!(await_converged(&mut fixture), Ok(()));
        fixture.world.advance(RESYNC / 3);
        assert_eq!(references(&mut fixture), ["blue"]);
        assert_eq!(fixture.created().len(), 1);
    });
}

/// Checks a property of a controller that has the external API for itself.
fn check_exclusive(property: Property, seed: u64) -> Result<(), String> {
    let candidate = Candidate::new(Exclusive, ResyncMode::Periodic);
    simulate(EngineKind::Fast, seed, |world| property(&mut Fixture::exclusive(world, &candidate, &["apple"])))
}

#[test]
fn a_controller_with_exclusive_use_passes_the_suite_and_deletes_everything_else() {
    // LEAK-02 is about other clients, which do not exist here.
    for (id, property) in SUITE.into_iter().filter(|(id, _)| *id != "LEAK-02") {
        assert_eq!(check_exclusive(property, 1), Ok(()), "{id}");
    }
    let takes_over: Property = |fixture| {
        await_converged(fixture)?;
        assert!(fixture.resources().is_empty(), "a resource from earlier is deleted");
        // A resource with the name of a shape becomes the resource of the shape.
        fixture.world.kill(GUEST);
        fixture.add_foreign_resource("default.red");
        fixture.add_foreign_resource("pear");
        fixture.create_shape("red", "red");
        fixture.world.restart(GUEST);
        await_converged(fixture)?;
        assert_eq!(fixture.resources().into_keys().collect::<Vec<String>>(), ["default.red"]);
        Ok(())
    };
    assert_eq!(check_exclusive(takes_over, 2), Ok(()));
}

#[test]
fn a_controller_with_exclusive_use_deletes_nothing_while_it_cannot_list_the_shapes() {
    let property: Property = |fixture| {
        two_resources(fixture)?;
        fixture.world.fail_requests(CLUSTER, "GET shapes", Fault::Refuse { status: 403, retry_after_secs: None }, None);
        fixture.add_foreign_resource("pear");
        fixture.world.advance(LONG_ENOUGH);
        assert_eq!(fixture.resources().len(), 3);
        fixture.world.stop_failing(CLUSTER);
        fixture.world.advance(LONG_ENOUGH);
        assert_eq!(fixture.resources().len(), 2);
        await_converged(fixture)
    };
    assert_eq!(check_exclusive(property, 3), Ok(()));
}

#[test]
fn exclusive_use_of_a_shared_api_is_found_to_delete_resources_of_others() {
    let found = violated(&Candidate::new(Exclusive, ResyncMode::Periodic));
    assert!(found.contains(&"LEAK-02"), "{found:?}");
}
