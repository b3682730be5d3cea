//! One test for each requirement on a reconciliation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::{Fault, Verb, Write};
use sindri_guests::database::{
    APPLIED, CHILDREN, Child, DATABASE, MANAGER_LABEL, READY, RESYNC, TRANSIENT_DELAY, UNKNOWN_DELAY, Variant,
    condition_status,
};
use sindri_guests::harness::{POD, World, is_guest_write, simulate};
use sindri_guests::object::{name, uid};
use sindri_world::engine::EngineKind;
use sindri_world::trace;

use crate::database_support::{
    API, GUEST, NAMESPACE, add_controller, add_oracles, check_converged, child_of, database, declare, edit_children,
    install_controller, managed, reconciler, resource_version, scale,
};

const SOON: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);

/// Adds the controller and one database, `shop`, and waits until it is applied.
fn with_shop(world: &mut World) {
    add_controller(world, Variant::default());
    add_oracles(world);
    declare(world, "shop");
    await_converged(world);
}

fn await_converged(world: &mut World) {
    let has_converged = world.advance_until_written(10 * MINUTE, |world| check_converged(world).is_ok());
    assert!(has_converged, "{:?}", check_converged(world));
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

/// Returns the controller's writes to objects of a kind, from an index on.
fn writes(world: &World, from: usize, verb: Verb, kind: &str) -> Vec<Write> {
    let wanted = |write: &&Write| is_guest_write(write) && write.verb == verb && write.key.kind == kind;
    world.writes(API)[from..].iter().filter(wanted).cloned().collect()
}

#[test]
fn reconciling_a_deleted_database_succeeds_and_writes_nothing() {
    simulate(EngineKind::Fast, 1, |world| {
        world.add_api(API);
        world.install_crd(API, &sindri_guests::database::crd());
        let result = Arc::new(Mutex::new(None));
        let sender = result.clone();
        world.add_guest(GUEST, move |process| {
            let (reconciler, sender) = (reconciler(&process, Variant::default()), sender.clone());
            async move {
                let outcome = reconciler.reconcile(NAMESPACE, "missing").await;
                *sender.lock().unwrap() = Some(outcome);
            }
        });
        world.advance(SOON);
        let outcome = result.lock().unwrap().take();
        assert_eq!(outcome, Some(Ok(sindri_guests::database::ReconcileResult::NothingToDo)));
        let requests: Vec<String> = world.requests(API, "").into_iter().map(|request| request.line).collect();
        assert_eq!(requests, ["GET /apis/guests.example.com/v1/namespaces/default/databases/missing"]);
    });
}

#[test]
fn a_missing_child_is_created_once_with_an_owner_reference() {
    for engine in EngineKind::ALL {
        simulate(engine, 2, |world| {
            with_shop(world);
            let parent = database(world, "shop");
            for child in CHILDREN {
                assert_eq!(writes(world, 0, Verb::Create, child.kind().kind).len(), 1, "{child:?}");
                let owner = child_of(world, child, "shop")["metadata"]["ownerReferences"][0].clone();
                assert_eq!((&owner["uid"], &owner["controller"]), (&parent["metadata"]["uid"], &json!(true)));
            }
            // A deleted child is created again at once; the others are not written.
            let service = resource_version(&child_of(world, Child::Service, "shop"));
            world.delete(API, Child::Secret.kind(), NAMESPACE, "shop-credentials");
            let from = world.writes(API).len();
            world.advance(Duration::from_secs(2));
            assert_eq!(writes(world, from, Verb::Create, "Secret").len(), 1);
            assert_eq!(resource_version(&child_of(world, Child::Service, "shop")), service);
        });
    }
}

#[test]
fn an_equal_child_is_not_written_and_a_different_one_is_written_once() {
    simulate(EngineKind::Fast, 3, |world| {
        with_shop(world);
        let stateful_set = child_of(world, Child::StatefulSet, "shop");
        assert!(stateful_set["spec"]["updateStrategy"].is_object(), "the server sets defaults");
        // Nothing differs: the child is read again, and nothing is written.
        let (from, reads) = (world.writes(API).len(), world.requests(API, "GET statefulsets/shop").len());
        world.advance(11 * MINUTE);
        assert!(world.requests(API, "GET statefulsets/shop").len() > reads, "the child was not read again");
        assert_eq!(world.writes(API).len(), from);
        // The database differs: one update of the one affected child.
        scale(world, "shop", 3);
        let from = world.writes(API).len();
        world.advance(11 * MINUTE);
        let updates: Vec<Vec<Write>> =
            ["StatefulSet", "Service", "Secret"].map(|kind| writes(world, from, Verb::Update, kind)).into();
        assert_eq!(updates.iter().map(Vec::len).collect::<Vec<usize>>(), [1, 0, 0]);
        let changed = child_of(world, Child::StatefulSet, "shop");
        assert_eq!(
            (&changed["spec"]["replicas"], &changed["spec"]["updateStrategy"]),
            (&json!(3), &stateful_set["spec"]["updateStrategy"])
        );
        // Another client edits the child: one update reverts it.
        world.edit(API, Child::StatefulSet.kind(), NAMESPACE, "shop", |object| object["spec"]["replicas"] = json!(9));
        let from = world.writes(API).len();
        world.advance(11 * MINUTE);
        assert_eq!(writes(world, from, Verb::Update, "StatefulSet").len(), 1);
        await_converged(world);
    });
}

#[test]
fn a_create_whose_response_was_lost_leaves_one_child() {
    for engine in EngineKind::ALL {
        for child in CHILDREN {
            simulate(engine, 4, |world| {
                add_controller(world, Variant::default());
                world.fail_requests(API, &format!("POST {}", child.kind().plural), Fault::LoseResponse, Some(1));
                declare(world, "shop");
                await_converged(world);
                let secret = child_of(world, Child::Secret, "shop");
                world.advance(10 * MINUTE);
                for child in CHILDREN {
                    assert_eq!(writes(world, 0, Verb::Create, child.kind().kind).len(), 1, "{child:?}");
                    assert_eq!(managed(world, child).len(), 1, "{child:?}");
                }
                assert_eq!(child_of(world, Child::Secret, "shop"), secret, "the password stays");
            });
        }
    }
}

#[test]
fn the_password_stays_until_it_is_removed_and_is_never_logged() {
    simulate(EngineKind::Fast, 13, |world| {
        with_shop(world);
        let password = |world: &mut World| {
            child_of(world, Child::Secret, "shop")["data"]["password"].as_str().unwrap_or_default().to_owned()
        };
        let first = password(world);
        scale(world, "shop", 2);
        await_converged(world);
        assert_eq!(password(world), first);
        world.edit(API, Child::Secret.kind(), NAMESPACE, "shop-credentials", |secret| secret["data"] = json!({}));
        world.advance(SOON);
        let second = password(world);
        assert_eq!((second.len(), second == first), (first.len(), false));
        let trace = trace::take();
        assert!(trace.lines().len() > 40, "{} lines", trace.lines().len());
        assert!(!trace.lines().iter().any(|line| line.contains(&first) || line.contains(&second)));
    });
}

#[test]
fn a_failure_of_the_second_child_leaves_the_first_unchanged() {
    simulate(EngineKind::Fast, 5, |world| {
        add_controller(world, Variant::default());
        let unavailable = Fault::Refuse { status: 503, retry_after_secs: None };
        world.fail_requests(API, "POST services", unavailable, Some(3));
        declare(world, "shop");
        let has_failed = |world: &mut World| !world.requests(API, "POST services").is_empty();
        assert!(world.advance_until(SOON, has_failed));
        let secret = resource_version(&child_of(world, Child::Secret, "shop"));
        assert!(managed(world, Child::Service).is_empty());
        await_converged(world);
        assert_eq!(world.requests(API, "POST services").len(), 4);
        assert_eq!(resource_version(&child_of(world, Child::Secret, "shop")), secret);
    });
}

#[test]
fn children_are_deleted_with_their_parent_and_other_objects_stay() {
    simulate(EngineKind::Fast, 6, |world| {
        with_shop(world);
        declare(world, "bank");
        await_converged(world);
        // It looks like a child, but has no owner reference.
        let metadata = json!({"name": "shop-notes", "namespace": NAMESPACE, "labels": {MANAGER_LABEL: "someone-else"}});
        world.create(API, Child::Secret.kind(), &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
        world.delete(API, DATABASE, NAMESPACE, "shop");
        world.advance(MINUTE);
        for child in CHILDREN {
            let left: Vec<Value> = managed(world, child);
            assert_eq!(left.len(), 1, "{child:?}");
            assert!(name(&left[0]).starts_with("bank"), "{left:?}");
        }
        assert!(world.get(API, Child::Secret.kind(), NAMESPACE, "shop-notes").is_some());
        // A new database of the same name gets new children.
        declare(world, "shop");
        await_converged(world);
    });
}

#[test]
fn a_database_that_is_recreated_at_once_gets_new_children() {
    simulate(EngineKind::Fast, 7, |world| {
        with_shop(world);
        let before = uid(&child_of(world, Child::Secret, "shop")).to_owned();
        world.delete(API, DATABASE, NAMESPACE, "shop");
        // The garbage collector has not run yet.
        declare(world, "shop");
        await_converged(world);
        assert_ne!(uid(&child_of(world, Child::Secret, "shop")), before);
    });
}

/// Returns the seconds between the requests that match a pattern, rounded.
fn seconds_between(world: &World, pattern: &str) -> Vec<u64> {
    let at: Vec<Duration> = world.requests(API, pattern).iter().map(|request| request.at).collect();
    at.windows(2).map(|pair| (pair[1] - pair[0] + Duration::from_millis(500)).as_secs()).collect()
}

#[test]
fn a_transient_error_is_retried_after_ten_seconds_and_an_unknown_result_after_five() {
    let refused = |status| Fault::Refuse { status, retry_after_secs: None };
    let cases = [
        (refused(429), TRANSIENT_DELAY),
        (refused(503), TRANSIENT_DELAY),
        (refused(500), UNKNOWN_DELAY),
        (refused(504), UNKNOWN_DELAY),
        (Fault::CutBeforeCommit, UNKNOWN_DELAY),
        (Fault::LoseResponse, UNKNOWN_DELAY),
    ];
    assert_eq!((TRANSIENT_DELAY.as_secs(), UNKNOWN_DELAY.as_secs()), (10, 5));
    for (fault, delay) in cases {
        simulate(EngineKind::Fast, 8, |world| {
            add_controller(world, Variant::default());
            world.fail_requests(API, "GET services/shop", fault.clone(), Some(4));
            declare(world, "shop");
            await_converged(world);
            let delays = seconds_between(world, "GET services/shop");
            assert_eq!(delays[..4], [delay.as_secs(); 4], "{fault:?}");
        });
    }
}

#[test]
fn children_are_verified_at_once_after_a_create_or_an_update_and_then_every_five_minutes() {
    simulate(EngineKind::Fast, 16, |world| {
        add_controller(world, Variant::default());
        // Without watches the controller reconciles only when it decides to.
        world.kill(GUEST);
        declare(world, "shop");
        world.fail_requests(API, "watch", Fault::Refuse { status: 503, retry_after_secs: None }, None);
        world.restart(GUEST);
        world.advance(RESYNC / 2);
        scale(world, "shop", 2);
        world.advance(3 * RESYNC);
        assert_eq!(RESYNC.as_secs(), 300);
        // Create and verify; five minutes later update and verify; then equal.
        assert_eq!(seconds_between(world, "GET statefulsets/shop"), [0, 300, 0, 300, 300]);
        assert_eq!(world.requests(API, "PUT statefulsets/shop").len(), 1);
        assert!(check_converged(world).is_ok(), "{:?}", check_converged(world));
    });
}

#[test]
fn a_change_that_the_server_forbids_is_reported() {
    simulate(EngineKind::Fast, 17, |world| {
        with_shop(world);
        world.advance(SOON);
        world.edit(API, DATABASE, NAMESPACE, "shop", |database| database["spec"]["storage"] = json!("2Gi"));
        world.advance(4 * MINUTE);
        let updated = database(world, "shop");
        assert_eq!(condition_status(&updated, APPLIED), "False");
        assert!(updated.to_string().contains("updates to statefulset spec"), "{updated}");
        assert_eq!(world.requests(API, "PUT statefulsets/shop").len(), 1, "it is not repeated at once");
        world.edit(API, DATABASE, NAMESPACE, "shop", |database| database["spec"]["storage"] = json!("1Gi"));
        await_converged(world);
    });
}

#[test]
fn the_pods_of_a_database_start_in_order_and_its_status_follows() {
    simulate(EngineKind::Fast, 18, |world| {
        world.add_api_with_nodes(API, &["node-1", "node-2"]);
        install_controller(world, Variant::default());
        declare(world, "shop");
        scale(world, "shop", 2);
        let is_ready = |world: &mut World| condition_status(&database(world, "shop"), READY) == "True";
        assert!(world.advance_until_written(MINUTE, is_ready), "{}", database(world, "shop"));
        let created = world.writes(API).iter().filter(|write| write.verb == Verb::Create && write.key.kind == POD.kind);
        let created: Vec<&str> = created.map(|write| write.key.name.as_str()).collect();
        assert_eq!(created, ["shop-0", "shop-1"]);
        // A pod keeps its name when its node fails, and the status says when it is back.
        world.fail_node(API, "node-1");
        assert!(world.advance_until_written(SOON, |world| !is_ready(world)));
        assert!(world.advance_until_written(SOON, is_ready));
        let nodes: Vec<(String, Value)> =
            world.list(API, POD).iter().map(|pod| (name(pod).to_owned(), pod["spec"]["nodeName"].clone())).collect();
        assert_eq!(nodes, ["shop-0", "shop-1"].map(|pod| (pod.to_owned(), json!("node-2"))));
        await_converged(world);
    });
}

#[test]
fn a_permanent_error_is_reported_and_retried_slowly() {
    simulate(EngineKind::Fast, 9, |world| {
        add_controller(world, Variant::default());
        let forbidden = Fault::Refuse { status: 403, retry_after_secs: None };
        world.fail_requests(API, "POST statefulsets", forbidden, None);
        declare(world, "shop");
        world.advance(4 * MINUTE);
        let updated = database(world, "shop");
        assert_eq!(condition_status(&updated, APPLIED), "False");
        assert!(updated["status"]["conditions"][0]["message"].as_str().unwrap().contains("(403)"), "{updated}");
        let attempts = world.requests(API, "POST statefulsets").len();
        assert!((1..=4).contains(&attempts), "{attempts} attempts in four minutes");
        // The controller does not give up, even if it may not read the children.
        world.fail_requests(API, "GET secrets/", Fault::Refuse { status: 403, retry_after_secs: None }, None);
        scale(world, "shop", 4);
        world.advance(4 * MINUTE);
        assert!(world.requests(API, "GET secrets/").len() <= attempts + 4);
        world.stop_failing(API);
        await_converged(world);
    });
}

/// Creates a Service of another client with the name of a child.
fn add_foreign_service(world: &mut World) -> Value {
    let metadata = json!({"name": "shop", "namespace": NAMESPACE});
    let spec = json!({"ports": [{"port": 80}]});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec});
    world.create(API, Child::Service.kind(), &service)
}

fn assert_foreign_service_is_reported(world: &mut World, foreign: &Value) {
    world.advance(4 * MINUTE);
    assert_eq!(resource_version(&child_of(world, Child::Service, "shop")), resource_version(foreign));
    let updated = database(world, "shop");
    assert_eq!(condition_status(&updated, APPLIED), "False");
    assert!(updated.to_string().contains("Service shop exists and does not belong to this database"), "{updated}");
}

#[test]
fn a_child_of_another_owner_is_reported_and_not_changed() {
    simulate(EngineKind::Fast, 10, |world| {
        add_controller(world, Variant::default());
        let foreign = add_foreign_service(world);
        declare(world, "shop");
        assert_foreign_service_is_reported(world, &foreign);
    });
}

#[test]
fn an_object_that_appears_between_observing_and_creating_is_observed_again() {
    simulate(EngineKind::Fast, 14, |world| {
        add_controller(world, Variant::default());
        add_oracles(world);
        declare(world, "shop");
        let has_read = |world: &mut World| !world.requests(API, "GET services/shop").is_empty();
        assert!(world.advance_until(SOON, has_read));
        let foreign = add_foreign_service(world);
        assert_foreign_service_is_reported(world, &foreign);
        assert_eq!(world.requests(API, "POST services").len(), 1, "the create was rejected once");
        assert!(world.violations().is_empty(), "{:?}", world.violations());
    });
}

#[test]
fn after_a_conflict_the_object_is_read_again_and_no_update_is_lost() {
    for engine in EngineKind::ALL {
        simulate(engine, 11, |world| {
            with_shop(world);
            let reads = world.requests(API, "GET statefulsets/shop").len();
            scale(world, "shop", 2);
            let has_read = |world: &mut World| world.requests(API, "GET statefulsets/shop").len() > reads;
            assert!(world.advance_until(SOON, has_read));
            edit_children(world, 1);
            await_converged(world);
            let stateful_set = child_of(world, Child::StatefulSet, "shop");
            assert_eq!(stateful_set["spec"]["replicas"], 2);
            assert_eq!(stateful_set["metadata"]["annotations"]["example.com/remark"], "1");
            assert_eq!(world.requests(API, "PUT statefulsets/shop").len(), 2, "one conflict and one update");
        });
    }
}

#[test]
fn the_status_is_written_last_and_matches_the_observed_state() {
    simulate(EngineKind::Fast, 12, |world| {
        with_shop(world);
        let writes: Vec<&Write> = world.writes(API).iter().filter(|write| is_guest_write(write)).collect();
        let order: Vec<&str> = writes.iter().map(|write| write.key.kind.as_str()).collect();
        assert_eq!(order, ["Secret", "Service", "StatefulSet", "Database"]);
        let updated = database(world, "shop");
        assert_eq!((condition_status(&updated, APPLIED), condition_status(&updated, READY)), ("True", "False"));
        assert_eq!((&updated["status"]["observedGeneration"], &updated["status"]["ready"]), (&json!(1), &json!(false)));
        // The pods run: only the status is written.
        let since = updated["status"]["conditions"][0]["lastTransitionTime"].clone();
        let from = world.writes(API).len();
        world.set_status(API, Child::StatefulSet.kind(), NAMESPACE, "shop", json!({"replicas": 1, "readyReplicas": 1}));
        world.advance(SOON);
        let updated = database(world, "shop");
        assert_eq!((&updated["status"]["ready"], condition_status(&updated, READY)), (&json!(true), "True"));
        assert_eq!(updated["status"]["conditions"][0]["lastTransitionTime"], since, "Applied has the same status");
        assert_eq!(world.writes(API)[from..].iter().filter(|write| is_guest_write(write)).count(), 1);
        scale(world, "shop", 2);
        await_converged(world);
        let updated = database(world, "shop");
        assert_eq!((&updated["status"]["observedGeneration"], &updated["status"]["ready"]), (&json!(2), &json!(false)));
    });
}
