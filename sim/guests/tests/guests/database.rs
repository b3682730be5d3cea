//! One test for each thing that a reconcile has to get right.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sindri_apiserver::{Fault, Verb, Write};
use sindri_guests::client::{name, uid};
use sindri_guests::database::{APPLIED, CHILDREN, Child, DATABASE, MANAGER_LABEL, Manner, READY, condition};
use sindri_guests::harness::{World, is_guests, play};
use sindri_world::engine::EngineKind;
use sindri_world::trace;

use crate::databases::{
    API, GUEST, PLACE, add_judges, child_of, database, declare, managed, meddle, move_in, reconciler, scale, settled,
    version,
};

const SOON: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);

/// A world with one database, `shop`, that is as declared.
fn with_shop(world: &mut World) {
    move_in(world, Manner::default());
    add_judges(world);
    declare(world, "shop");
    await_settled(world);
}

fn await_settled(world: &mut World) {
    let is_settled = world.advance_until_written(10 * MINUTE, |world| settled(world).is_ok());
    assert!(is_settled, "{:?}", settled(world));
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

/// The controller's writes to objects of a kind, from a point on.
fn writes(world: &World, from: usize, verb: Verb, kind: &str) -> Vec<Write> {
    let wanted = |write: &&Write| is_guests(write) && write.verb == verb && write.key.kind == kind;
    world.writes(API)[from..].iter().filter(wanted).cloned().collect()
}

#[test]
fn a_declaration_that_is_gone_is_no_error_and_nothing_is_done() {
    play(EngineKind::Fast, 1, |world| {
        world.add_api(API);
        world.define(API, &sindri_guests::database::definition());
        let ended = Arc::new(Mutex::new(None));
        let told = ended.clone();
        world.add_guest(GUEST, move |process| {
            let (reconciler, told) = (reconciler(&process, Manner::default()), told.clone());
            async move {
                let outcome = reconciler.reconcile(PLACE, "nobody").await;
                *told.lock().unwrap() = Some(outcome);
            }
        });
        world.advance(SOON);
        let outcome = ended.lock().unwrap().take();
        assert_eq!(outcome, Some(Ok(sindri_guests::database::Outcome::NothingToDo)));
        let asked: Vec<String> = world.asked(API, "").into_iter().map(|asked| asked.line).collect();
        assert_eq!(asked, ["GET /apis/guests.example.com/v1/namespaces/default/databases/nobody"]);
    });
}

#[test]
fn a_missing_child_is_created_once_and_names_its_owner() {
    for arm in EngineKind::ALL {
        play(arm, 2, |world| {
            with_shop(world);
            let parent = database(world, "shop");
            for child in CHILDREN {
                assert_eq!(writes(world, 0, Verb::Create, child.kind().kind).len(), 1, "{child:?}");
                let owner = child_of(world, child, "shop")["metadata"]["ownerReferences"][0].clone();
                assert_eq!((&owner["uid"], &owner["controller"]), (&parent["metadata"]["uid"], &json!(true)));
            }
            // And one that is deleted is back at once, the others untouched.
            let service = version(&child_of(world, Child::Service, "shop"));
            world.delete(API, Child::Secret.kind(), PLACE, "shop-credentials");
            let from = world.writes(API).len();
            world.advance(Duration::from_secs(2));
            assert_eq!(writes(world, from, Verb::Create, "Secret").len(), 1);
            assert_eq!(version(&child_of(world, Child::Service, "shop")), service);
        });
    }
}

#[test]
fn what_is_equal_is_not_written_and_what_differs_is_written_once() {
    play(EngineKind::Fast, 3, |world| {
        with_shop(world);
        let deployment = child_of(world, Child::Deployment, "shop");
        assert!(deployment["spec"]["strategy"].is_object(), "the server fills in what nobody declared");
        // Nothing differs: it is looked at again, and nothing is written.
        let (from, asked) = (world.writes(API).len(), world.asked(API, "GET deployments/shop").len());
        world.advance(11 * MINUTE);
        assert!(world.asked(API, "GET deployments/shop").len() > asked, "nobody looked again");
        assert_eq!(world.writes(API).len(), from);
        // The declaration differs: one update of the one child that it concerns.
        scale(world, "shop", 3);
        let from = world.writes(API).len();
        world.advance(11 * MINUTE);
        let updates: Vec<Vec<Write>> =
            ["Deployment", "Service", "Secret"].map(|kind| writes(world, from, Verb::Update, kind)).into();
        assert_eq!(updates.iter().map(Vec::len).collect::<Vec<usize>>(), [1, 0, 0]);
        let changed = child_of(world, Child::Deployment, "shop");
        assert_eq!(
            (&changed["spec"]["replicas"], &changed["spec"]["strategy"]),
            (&json!(3), &deployment["spec"]["strategy"])
        );
        // Somebody else edits the child: one update back.
        world.change(API, Child::Deployment.kind(), PLACE, "shop", |object| object["spec"]["replicas"] = json!(9));
        let from = world.writes(API).len();
        world.advance(11 * MINUTE);
        assert_eq!(writes(world, from, Verb::Update, "Deployment").len(), 1);
        await_settled(world);
    });
}

#[test]
fn a_create_whose_answer_was_lost_leaves_one_child() {
    for arm in EngineKind::ALL {
        for child in CHILDREN {
            play(arm, 4, |world| {
                move_in(world, Manner::default());
                world.fail(API, &format!("POST {}", child.kind().plural), Fault::LoseResponse, Some(1));
                declare(world, "shop");
                await_settled(world);
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
fn the_password_stays_until_somebody_removes_it_and_is_told_to_nobody() {
    play(EngineKind::Fast, 13, |world| {
        with_shop(world);
        let password = |world: &mut World| {
            child_of(world, Child::Secret, "shop")["data"]["password"].as_str().unwrap_or_default().to_owned()
        };
        let first = password(world);
        scale(world, "shop", 2);
        await_settled(world);
        assert_eq!(password(world), first);
        world.change(API, Child::Secret.kind(), PLACE, "shop-credentials", |secret| secret["data"] = json!({}));
        world.advance(SOON);
        let second = password(world);
        assert_eq!((second.len(), second == first), (first.len(), false));
        let trace = trace::take();
        assert!(trace.lines().len() > 50);
        assert!(!trace.lines().iter().any(|line| line.contains(&first) || line.contains(&second)));
    });
}

#[test]
fn when_the_second_child_fails_the_first_is_left_as_it_is() {
    play(EngineKind::Fast, 5, |world| {
        move_in(world, Manner::default());
        let unavailable = Fault::Refuse { status: 503, retry_after_secs: None };
        world.fail(API, "POST services", unavailable, Some(3));
        declare(world, "shop");
        let half = |world: &mut World| !world.asked(API, "POST services").is_empty();
        assert!(world.advance_until(SOON, half));
        let secret = version(&child_of(world, Child::Secret, "shop"));
        assert!(managed(world, Child::Service).is_empty());
        await_settled(world);
        assert_eq!(world.asked(API, "POST services").len(), 4);
        assert_eq!(version(&child_of(world, Child::Secret, "shop")), secret);
    });
}

#[test]
fn children_follow_their_parent_and_what_it_does_not_own_stays() {
    play(EngineKind::Fast, 6, |world| {
        with_shop(world);
        declare(world, "bank");
        await_settled(world);
        // It even looks like a child, but has no owner.
        let metadata = json!({"name": "shop-notes", "namespace": PLACE, "labels": {MANAGER_LABEL: "someone-else"}});
        world.create(API, Child::Secret.kind(), &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
        world.delete(API, DATABASE, PLACE, "shop");
        world.advance(MINUTE);
        for child in CHILDREN {
            let left: Vec<Value> = managed(world, child);
            assert_eq!(left.len(), 1, "{child:?}");
            assert!(name(&left[0]).starts_with("bank"), "{left:?}");
        }
        assert!(world.get(API, Child::Secret.kind(), PLACE, "shop-notes").is_some());
        // A new one of the same name has children of its own.
        declare(world, "shop");
        await_settled(world);
    });
}

#[test]
fn a_database_that_is_declared_again_at_once_gets_children_of_its_own() {
    play(EngineKind::Fast, 7, |world| {
        with_shop(world);
        let before = uid(&child_of(world, Child::Secret, "shop")).to_owned();
        world.delete(API, DATABASE, PLACE, "shop");
        // The garbage collector has not been here yet.
        declare(world, "shop");
        await_settled(world);
        assert_ne!(uid(&child_of(world, Child::Secret, "shop")), before);
    });
}

#[test]
fn a_transient_error_is_tried_again_later_and_later() {
    play(EngineKind::Fast, 8, |world| {
        move_in(world, Manner::default());
        let unavailable = Fault::Refuse { status: 503, retry_after_secs: None };
        world.fail(API, "POST deployments", unavailable, Some(4));
        declare(world, "shop");
        await_settled(world);
        let at: Vec<u64> = world.asked(API, "POST deployments").iter().map(|asked| asked.at.as_secs()).collect();
        let waits: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits, [1, 2, 4, 8]);
    });
}

#[test]
fn a_permanent_error_is_reported_and_not_tried_hot() {
    play(EngineKind::Fast, 9, |world| {
        move_in(world, Manner::default());
        let forbidden = Fault::Refuse { status: 403, retry_after_secs: None };
        world.fail(API, "POST deployments", forbidden, None);
        declare(world, "shop");
        world.advance(4 * MINUTE);
        let told = database(world, "shop");
        assert_eq!(condition(&told, APPLIED), "False");
        assert!(told["status"]["conditions"][0]["message"].as_str().unwrap().contains("(403)"), "{told}");
        let tries = world.asked(API, "POST deployments").len();
        assert!((1..=4).contains(&tries), "{tries} tries in four minutes");
        // It is not given up either, and neither is one who may not even look.
        world.fail(API, "GET secrets/", Fault::Refuse { status: 403, retry_after_secs: None }, None);
        scale(world, "shop", 4);
        world.advance(4 * MINUTE);
        assert!(world.asked(API, "GET secrets/").len() <= tries + 4);
        world.heal(API);
        await_settled(world);
    });
}

/// A Service that somebody else made, with the name of a child.
fn foreign_service(world: &mut World) -> Value {
    let metadata = json!({"name": "shop", "namespace": PLACE});
    let spec = json!({"ports": [{"port": 80}]});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec});
    world.create(API, Child::Service.kind(), &service)
}

fn assert_foreign_service_is_reported(world: &mut World, foreign: &Value) {
    world.advance(4 * MINUTE);
    assert_eq!(version(&child_of(world, Child::Service, "shop")), version(foreign));
    let told = database(world, "shop");
    assert_eq!(condition(&told, APPLIED), "False");
    assert!(told.to_string().contains("Service shop exists and does not belong to this database"), "{told}");
}

#[test]
fn a_child_that_belongs_to_someone_else_is_reported_and_left_alone() {
    play(EngineKind::Fast, 10, |world| {
        move_in(world, Manner::default());
        let foreign = foreign_service(world);
        declare(world, "shop");
        assert_foreign_service_is_reported(world, &foreign);
    });
}

#[test]
fn what_appears_between_looking_and_creating_is_looked_at_again() {
    play(EngineKind::Fast, 14, |world| {
        move_in(world, Manner::default());
        add_judges(world);
        declare(world, "shop");
        let has_looked = |world: &mut World| !world.asked(API, "GET services/shop").is_empty();
        assert!(world.advance_until(SOON, has_looked));
        let foreign = foreign_service(world);
        assert_foreign_service_is_reported(world, &foreign);
        assert_eq!(world.asked(API, "POST services").len(), 1, "the create was refused, once");
        assert!(world.violations().is_empty(), "{:?}", world.violations());
    });
}

#[test]
fn a_conflict_is_read_again_and_nobodys_update_is_lost() {
    for arm in EngineKind::ALL {
        play(arm, 11, |world| {
            with_shop(world);
            let read = world.asked(API, "GET deployments/shop").len();
            scale(world, "shop", 2);
            let has_read = |world: &mut World| world.asked(API, "GET deployments/shop").len() > read;
            assert!(world.advance_until(SOON, has_read));
            meddle(world, 1);
            await_settled(world);
            let deployment = child_of(world, Child::Deployment, "shop");
            assert_eq!(deployment["spec"]["replicas"], 2);
            assert_eq!(deployment["metadata"]["annotations"]["example.com/remark"], "1");
            assert_eq!(world.asked(API, "PUT deployments/shop").len(), 2, "one conflict and one update");
        });
    }
}

#[test]
fn the_status_is_written_last_and_says_what_was_observed() {
    play(EngineKind::Fast, 12, |world| {
        with_shop(world);
        let guests: Vec<&Write> = world.writes(API).iter().filter(|write| is_guests(write)).collect();
        let order: Vec<&str> = guests.iter().map(|write| write.key.kind.as_str()).collect();
        assert_eq!(order, ["Secret", "Service", "Deployment", "Database"]);
        let told = database(world, "shop");
        assert_eq!((condition(&told, APPLIED), condition(&told, READY)), ("True", "False"));
        assert_eq!((&told["status"]["observedGeneration"], &told["status"]["ready"]), (&json!(1), &json!(false)));
        // The pods run: nothing is written but what is said about it.
        let since = told["status"]["conditions"][0]["lastTransitionTime"].clone();
        let from = world.writes(API).len();
        world.set_status(API, Child::Deployment.kind(), PLACE, "shop", json!({"replicas": 1, "readyReplicas": 1}));
        world.advance(SOON);
        let told = database(world, "shop");
        assert_eq!((&told["status"]["ready"], condition(&told, READY)), (&json!(true), "True"));
        assert_eq!(told["status"]["conditions"][0]["lastTransitionTime"], since, "Applied did not flip");
        assert_eq!(world.writes(API)[from..].iter().filter(|write| is_guests(write)).count(), 1);
        scale(world, "shop", 2);
        await_settled(world);
        let told = database(world, "shop");
        assert_eq!((&told["status"]["observedGeneration"], &told["status"]["ready"]), (&json!(2), &json!(false)));
    });
}
