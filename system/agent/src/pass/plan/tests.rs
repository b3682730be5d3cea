//! Tables for each rule of the plan, then properties over random states of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use sindri_model::policy::DriftMode;
use sindri_model::{Checksum, Epoch, IgnoredFields, ObjectKey, RevisionId, Sequence, StackId};

use super::*;
use crate::cluster::ownership::{Ownership, RevisionOwner};
use crate::cluster::{ApiResource, AppliedFieldsHash, AppliedObject, LiveObject, Owner};
use crate::pass::creation::{Creation, CreationResult};
use crate::pass::desired::{DesiredObject, DesiredStack, Goal};
use crate::pass::inventory::{Entry, Inventory, RevisionPosition};
use crate::pass::observe::{LiveSet, UnreadableKinds};
use crate::pass::order::Turn;
use crate::pass::stage::{DeleteOrder, Stage};
use crate::settings::Brake;
use crate::target::claims::Claims;

fn stack(digit: char) -> StackId {
    format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
}

fn revision(digit: char) -> RevisionId {
    format!("{digit}0000000-0000-4000-8000-00000000000f").parse().unwrap()
}

fn resource(kind: &str) -> Arc<ApiResource> {
    let (group, namespaced) = match kind {
        "Namespace" => ("", false),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", false),
        _ => ("", true),
    };
    Arc::new(ApiResource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced,
        is_aggregated: false,
    })
}

fn key(kind: &str, name: &str) -> Arc<ObjectKey> {
    let resource = resource(kind);
    let namespace = resource.namespaced.then(|| "shop".to_owned());
    Arc::new(ObjectKey { group: resource.group.clone(), kind: kind.into(), namespace, name: name.into() })
}

fn object(kind: &str, name: &str) -> DesiredObject {
    let (manifest, ignored) = (json!({}), IgnoredFields::default());
    let owner = Arc::new(RevisionOwner::new(stack('1'), &Checksum::compute("")));
    DesiredObject {
        document: 1,
        key: key(kind, name),
        resource: resource(kind),
        manifest,
        owner,
        ignored,
        replace: false,
        turn: Turn::default(),
        once: None,
    }
}

/// Makes a plan where no other stack has claims and drift is corrected.
fn plan(
    desired: &DesiredStack,
    inventory: &Inventory,
    live: &LiveSet,
    last_applied: Option<&AppliedState>,
) -> Result<Plan, PlanError> {
    plan_with(desired, inventory, live, last_applied, &Claims::default(), DriftMode::Correct)
}

fn present(sequence: i64, objects: Vec<DesiredObject>) -> DesiredStack {
    let position = RevisionPosition { epoch: Epoch(1), sequence: Sequence(sequence) };
    DesiredStack {
        stack: stack('1'),
        revision: revision('1'),
        position,
        goal: Goal::Present(objects.into_iter().map(Arc::new).collect()),
    }
}

fn entry(kind: &str, name: &str, uid: Option<&str>) -> Entry {
    Entry { uid: uid.map(str::to_owned), ..Entry::new(key(kind, name), resource(kind)) }
}

fn inventory(entries: impl IntoIterator<Item = Entry>) -> Inventory {
    let mut inventory = Inventory::default();
    entries.into_iter().for_each(|entry| inventory.insert(entry));
    inventory
}

fn fields(time: &str) -> Option<AppliedFieldsHash> {
    Some(AppliedFieldsHash::new(time, "{}"))
}

fn owned_by(owner: char, key: &ObjectKey) -> Ownership {
    Ownership {
        stack: Some(stack(owner).to_string()),
        object: Some(key.to_string()),
        stack_label: Some(stack(owner).to_string()),
    }
}

fn owner() -> Owner {
    Owner { group: "apps".to_owned(), kind: "Deployment".to_owned(), uid: "1".to_owned() }
}

fn existing(key: Arc<ObjectKey>, uid: &str, ownership: Ownership) -> LiveObject {
    LiveObject {
        resource: resource(&key.kind),
        key,
        uid: uid.into(),
        resource_version: "1".into(),
        applied_fields: fields("1"),
        ownership,
        owners: Vec::new(),
        service_account_uid: None,
        is_terminating: false,
        is_prune_disabled: false,
    }
}

fn live(objects: impl IntoIterator<Item = LiveObject>) -> LiveSet {
    objects.into_iter().map(|object| (object.key.clone(), object)).collect()
}

/// Returns what a plan does with an inventory entry that is no longer declared.
fn fate(entry: Entry, found: Option<LiveObject>) -> &'static str {
    let known = entry.key.clone();
    let plan = plan(&present(2, vec![]), &inventory([entry]), &live(found), None).unwrap();
    match (plan.deletes.len(), plan.terminating.len(), plan.inventory_ahead.get(&known)) {
        (1, 0, Some(_)) => "deleted",
        (0, 1, Some(_)) => "waited for",
        (0, 0, None) => "dropped from the inventory",
        other => panic!("an entry has one fate, not {other:?}"),
    }
}

#[test]
fn an_undeclared_object_is_deleted_only_if_it_is_proved_to_belong_to_the_stack() {
    let a = key("ConfigMap", "a");
    let known = || entry("ConfigMap", "a", Some("7"));
    let ours = |uid| existing(a.clone(), uid, owned_by('1', &a));
    let bare = |uid| existing(a.clone(), uid, Ownership::default());
    assert_eq!(fate(known(), Some(ours("7"))), "deleted");
    assert_eq!(fate(known(), Some(bare("7"))), "deleted", "its UID proves it, with or without annotations");
    assert_eq!(fate(known(), None), "dropped from the inventory");
    assert_eq!(fate(known(), Some(bare("8"))), "dropped from the inventory", "recreated by another client");
    assert_eq!(fate(known(), Some(ours("8"))), "deleted", "recreated by the agent, killed before it stored the UID");
    assert_eq!(
        fate(entry("ConfigMap", "a", None), Some(ours("7"))),
        "deleted",
        "written, killed before the UID was stored"
    );
    assert_eq!(
        fate(entry("ConfigMap", "a", None), Some(bare("7"))),
        "dropped from the inventory",
        "stored ahead, never written"
    );
    assert_eq!(
        fate(known(), Some(existing(a.clone(), "7", owned_by('2', &a)))),
        "dropped from the inventory",
        "moved to another stack"
    );
    assert_eq!(
        fate(known(), Some(LiveObject { owners: vec![owner()], ..ours("7") })),
        "dropped from the inventory",
        "left to the garbage collector"
    );
    assert_eq!(fate(known(), Some(LiveObject { is_terminating: true, ..ours("7") })), "waited for");
    let copied = Ownership {
        stack: Some(stack('1').to_string()),
        object: Some("ConfigMap shop/original".into()),
        stack_label: None,
    };
    assert_eq!(
        fate(known(), Some(existing(a.clone(), "8", copied))),
        "dropped from the inventory",
        "annotations that a controller copied"
    );
}

#[test]
fn an_object_whose_annotation_disables_pruning_is_released_and_not_deleted() {
    let a = key("ConfigMap", "a");
    let kept = LiveObject { is_prune_disabled: true, ..existing(a.clone(), "7", owned_by('1', &a)) };
    let known = inventory([entry("ConfigMap", "a", Some("7"))]);
    let plan = plan(&present(2, vec![]), &known, &live([kept]), None).unwrap();
    assert_eq!((plan.deletes.len(), plan.releases.len()), (0, 1));
    assert!(plan.inventory_ahead.get(&a).is_some(), "it stays in the inventory until it is released");
}

#[test]
fn namespaces_and_crds_are_written_first_and_deleted_last() {
    let mixed = ["ConfigMap", "CustomResourceDefinition", "Secret", "Namespace"];
    let desired = present(2, mixed.map(|kind| object(kind, "new")).to_vec());
    let old = mixed.map(|kind| entry(kind, "old", Some("7")));
    let there = mixed.map(|kind| existing(key(kind, "old"), "7", owned_by('1', &key(kind, "old"))));
    let plan = plan(&desired, &inventory(old), &live(there), None).unwrap();
    let written: Vec<_> = plan.writes.iter().map(|write| write.object.key.kind.as_str()).collect();
    let deleted: Vec<_> = plan.deletes.iter().map(|delete| delete.entry.key.kind.as_str()).collect();
    assert_eq!(written, ["Namespace", "CustomResourceDefinition", "ConfigMap", "Secret"]);
    assert_eq!(deleted[2..], ["CustomResourceDefinition", "Namespace"]);
    assert_eq!(plan.inventory_ahead.entries().count(), 8, "everything is in the inventory before the first write");
}

#[test]
fn unchanged_objects_are_not_written_again_and_changed_ones_are() {
    let (a, b) = (key("ConfigMap", "a"), key("ConfigMap", "b"));
    let desired = present(2, vec![object("ConfigMap", "a"), object("ConfigMap", "b")]);
    let health = sindri_health::AssessedObject::new(&json!({}), &[]);
    let applied = |key: &Arc<ObjectKey>, uid: &str| AppliedObject {
        live: existing(key.clone(), uid, owned_by('1', key)),
        health: health.clone(),
        created: false,
        rewritten_field: None,
    };
    let objects = BTreeMap::from([(a.clone(), applied(&a, "7")), (b.clone(), applied(&b, "8"))]);
    let last_applied = AppliedState { revision: revision('1'), objects };
    let same = live([existing(a.clone(), "7", owned_by('1', &a)), existing(b.clone(), "8", owned_by('1', &b))]);
    let known = inventory([entry("ConfigMap", "a", Some("7")), entry("ConfigMap", "b", Some("8"))]);
    assert!(plan(&desired, &known, &same, Some(&last_applied)).unwrap().is_empty());
    assert_eq!(plan(&desired, &known, &same, None).unwrap().writes.len(), 2, "a new process writes all");
    let edited = live([
        existing(a.clone(), "7", owned_by('1', &a)),
        LiveObject { applied_fields: fields("9"), ..existing(b.clone(), "8", owned_by('1', &b)) },
    ]);
    let again = plan(&desired, &known, &edited, Some(&last_applied)).unwrap();
    assert_eq!(again.writes.iter().map(|write| &write.object.key).collect::<Vec<_>>(), [&b]);
    let other = AppliedState { revision: revision('2'), ..last_applied };
    assert_eq!(plan(&desired, &known, &same, Some(&other)).unwrap().writes.len(), 2, "another revision is applied");
}

#[test]
fn an_older_revision_is_rejected() {
    let mut known = inventory([entry("ConfigMap", "a", Some("7"))]);
    known.begun = Some(RevisionPosition { epoch: Epoch(1), sequence: Sequence(5) });
    let refused = plan(&present(4, vec![]), &known, &LiveSet::new(), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "revision 4 of epoch 1 is older than revision 5 of epoch 1, which was applied here before; it is not applied: submit the stack again"
    );
    assert!(plan(&present(5, vec![]), &known, &LiveSet::new(), None).is_ok());
}

#[test]
fn a_terminating_object_and_the_content_of_a_terminating_namespace_are_left_to_a_later_pass() {
    let (a, namespace) = (key("ConfigMap", "a"), key("Namespace", "shop"));
    let terminating =
        |key: &Arc<ObjectKey>| LiveObject { is_terminating: true, ..existing(key.clone(), "7", owned_by('1', key)) };
    let known = inventory([entry("ConfigMap", "a", Some("7")), entry("ConfigMap", "dropped", Some("8"))]);
    let dropped = key("ConfigMap", "dropped");
    let dropped = existing(dropped.clone(), "8", owned_by('1', &dropped));
    let desired = present(2, vec![object("ConfigMap", "a"), object("ConfigMap", "b"), object("Namespace", "shop")]);
    let keys = |plan: &Plan| plan.writes.iter().map(|write| write.object.key.clone()).collect::<Vec<_>>();
    let one = plan(&desired, &known, &live([terminating(&a), dropped.clone()]), None).unwrap();
    assert_eq!(keys(&one), [namespace.clone(), key("ConfigMap", "b")]);
    assert_eq!((one.delayed.as_slice(), one.is_partial, one.deletes.len()), ([a].as_slice(), true, 1));
    let all = plan(&desired, &known, &live([terminating(&namespace), dropped]), None).unwrap();
    assert_eq!((keys(&all), all.delayed.as_slice()), (vec![], [namespace].as_slice()));
}

#[test]
fn an_object_of_another_stack_is_rejected_with_its_owner() {
    let a = key("ConfigMap", "a");
    let theirs = live([existing(a.clone(), "7", owned_by('2', &a))]);
    let mut claims = Claims::default();
    claims.add(stack('2'), Sequence(1), &Some(vec![a]));
    let desired = present(2, vec![object("ConfigMap", "a")]);
    let refused = plan_with(&desired, &Inventory::default(), &theirs, None, &claims, DriftMode::Correct).unwrap_err();
    assert!(refused.to_string().contains(&stack('2').to_string()), "{refused}");
}

#[test]
fn an_object_of_a_stack_that_is_not_in_the_target_state_is_an_adoption() {
    let (a, b, c) = (key("ConfigMap", "a"), key("ConfigMap", "b"), key("ConfigMap", "c"));
    let without_key = Ownership { object: None, ..owned_by('2', &b) };
    let copy = owned_by('2', &a);
    let theirs = live([
        existing(a.clone(), "7", owned_by('2', &a)),
        existing(b.clone(), "8", without_key),
        existing(c, "9", copy),
    ]);
    let objects = ["a", "b", "c"].map(|name| object("ConfigMap", name)).to_vec();
    let adopted = plan(&present(1, objects), &Inventory::default(), &theirs, None).unwrap();
    let owner = stack('2').to_string();
    assert_eq!(adopted.adoptions, BTreeMap::from([(a, owner.clone()), (b, owner)]), "a copy belongs to no stack");
}

#[test]
fn a_turn_is_written_when_the_objects_of_the_earlier_turns_are_unchanged_and_ready() {
    let annotations = |wave: &str| BTreeMap::from([("sindri.dev/wave".to_owned(), wave.to_owned())]);
    let in_wave = |name: &str, wave: &str| {
        let turn = Turn::from_annotations(&key("ConfigMap", name), &annotations(wave)).unwrap();
        DesiredObject { turn, ..object("ConfigMap", name) }
    };
    let desired = present(2, vec![in_wave("b", "1"), in_wave("a", "0")]);
    let a = key("ConfigMap", "a");
    let known = inventory([entry("ConfigMap", "old", Some("1"))]);
    let old = existing(key("ConfigMap", "old"), "1", owned_by('1', &key("ConfigMap", "old")));
    let of_a = existing(a.clone(), "7", owned_by('1', &a));
    let health = sindri_health::AssessedObject::new(&json!({}), &[]);
    let applied = AppliedObject { live: of_a.clone(), health, created: false, rewritten_field: None };
    let applied = AppliedState { revision: revision('1'), objects: BTreeMap::from([(a.clone(), applied)]) };
    let plan = |inventory: &Inventory, is_applied: bool, ready: &[&Arc<ObjectKey>]| {
        let found = if is_applied { vec![old.clone(), of_a.clone()] } else { vec![old.clone()] };
        let (live, ready) = (live(found), ready.iter().map(|key| (*key).clone()).collect());
        let inputs = PlanInputs {
            inventory,
            live: &live,
            unreadable: &UnreadableKinds::default(),
            last_applied: is_applied.then_some(&applied),
            claims: &Claims::default(),
            drift: DriftMode::Correct,
            releases_all: false,
            is_impersonated: false,
            ready: Some(&ready),
        };
        let plan = make_plan(&desired, inputs).unwrap();
        let written: Vec<String> = plan.writes.iter().map(|write| write.object.key.name.clone()).collect();
        (written.join(" "), plan.waiting.map(|waiting| waiting.objects), plan.deletes.len(), plan.is_partial)
    };
    assert_eq!(plan(&known, false, &[&a]), ("a".into(), Some(vec![a.clone()]), 0, true), "not written yet");
    assert_eq!(plan(&known, true, &[]), (String::new(), Some(vec![a.clone()]), 0, true), "not ready");
    assert_eq!(plan(&known, true, &[&a]), ("b".into(), None, 1, false), "the last turn, and the deletes");
    let mut applied_before = known.clone();
    applied_before.applied = Some(desired.position);
    assert_eq!(plan(&applied_before, true, &[]).0, "b", "the drift of an applied revision does not wait");
}

#[test]
fn an_object_that_is_applied_once_is_not_written_again_after_it_is_gone() {
    let once = |text: &str| DesiredObject { once: Some(Checksum::compute(text)), ..object("ConfigMap", "a") };
    let creation = Creation { manifest: Checksum::compute("v1"), result: CreationResult::Completed };
    let created = Entry { once: Some(creation), ..entry("ConfigMap", "a", Some("7")) };
    let count = |object: DesiredObject, entry: &Entry| {
        plan(&present(2, vec![object]), &inventory([entry.clone()]), &LiveSet::default(), None).unwrap().writes.len()
    };
    assert_eq!(count(once("v1"), &created), 0);
    assert_eq!(count(once("v2"), &created), 1, "its declaration has changed");
    assert_eq!(count(object("ConfigMap", "a"), &created), 1, "it is not applied once any more");
    assert_eq!(count(once("v1"), &entry("ConfigMap", "a", None)), 1, "it is not known that it was created");
}

/// Makes a plan with all inputs given.
fn plan_with(
    desired: &DesiredStack,
    inventory: &Inventory,
    live: &LiveSet,
    last_applied: Option<&AppliedState>,
    claims: &Claims,
    drift: DriftMode,
) -> Result<Plan, PlanError> {
    let unreadable = &UnreadableKinds::default();
    make_plan(
        desired,
        PlanInputs {
            inventory,
            live,
            unreadable,
            last_applied,
            claims,
            drift,
            releases_all: false,
            is_impersonated: false,
            ready: None,
        },
    )
}

#[test]
fn an_object_moves_to_the_stack_that_declares_it_now() {
    let a = key("ConfigMap", "a");
    let of_first = live([existing(a.clone(), "7", owned_by('1', &a))]);
    let mut claims = Claims::default();
    claims.add(stack('1'), Sequence(4), &Some(Vec::new()));
    claims.add(stack('2'), Sequence(5), &Some(vec![a.clone()]));
    let known = inventory([entry("ConfigMap", "a", Some("7"))]);
    let first = plan_with(&present(4, vec![]), &known, &of_first, None, &claims, DriftMode::Correct).unwrap();
    assert_eq!(first.deletes, [], "the other stack declares it");
    assert!(first.inventory_ahead.get(&a).is_some(), "it stays in the inventory until the other stack owns it");
    let second = DesiredStack { stack: stack('2'), ..present(5, vec![object("ConfigMap", "a")]) };
    let taken = plan_with(&second, &Inventory::default(), &of_first, None, &claims, DriftMode::Correct).unwrap();
    assert_eq!(taken.writes.len(), 1, "the first stack does not declare it any more");
    claims.add(stack('1'), Sequence(4), &Some(vec![a.clone()]));
    let refused = plan_with(&second, &Inventory::default(), &of_first, None, &claims, DriftMode::Correct);
    assert!(matches!(refused, Err(PlanError::OwnedByOtherStacks(_))), "the first stack still declares it");
    let none = LiveSet::new();
    let later = plan_with(&second, &Inventory::default(), &none, None, &claims, DriftMode::Correct);
    assert!(matches!(later, Err(PlanError::OwnedByOtherStacks(_))), "of two claims the earlier one wins");
}

#[test]
fn drift_is_corrected_or_reported_or_ignored() {
    let a = key("ConfigMap", "a");
    let desired = present(2, vec![object("ConfigMap", "a")]);
    let mut known = inventory([entry("ConfigMap", "a", Some("7"))]);
    known.applied = Some(desired.position);
    let health = sindri_health::AssessedObject::new(&json!({}), &[]);
    let live_then = existing(a.clone(), "7", owned_by('1', &a));
    let applied = AppliedObject { live: live_then, health, created: false, rewritten_field: None };
    let last_applied = AppliedState { revision: revision('1'), objects: BTreeMap::from([(a.clone(), applied)]) };
    let edited = live([LiveObject { applied_fields: fields("9"), ..existing(a.clone(), "7", owned_by('1', &a)) }]);
    let steps = |last_applied, live: &LiveSet, drift| {
        let plan = plan_with(&desired, &known, live, last_applied, &Claims::default(), drift).unwrap();
        (plan.writes.len(), plan.checks.len(), plan.drifted.len())
    };
    let (all, gone) = (Some(&last_applied), LiveSet::new());
    assert_eq!(steps(all, &edited, DriftMode::Correct), (1, 0, 1));
    assert_eq!(steps(all, &edited, DriftMode::Detect), (0, 0, 1));
    assert_eq!(steps(all, &edited, DriftMode::Off), (0, 0, 0), "drift is not looked for");
    assert_eq!(steps(all, &gone, DriftMode::Detect), (0, 0, 1), "a deleted object has drifted");
    assert_eq!(steps(None, &edited, DriftMode::Correct), (1, 0, 0), "a new process does not know, and applies");
    assert_eq!(steps(None, &edited, DriftMode::Detect), (0, 1, 0), "or compares by a dry run");
    assert_eq!(steps(None, &edited, DriftMode::Off), (0, 0, 0));
}

fn find_holds(
    plan: &Plan,
    (inventory, live): (&Inventory, &LiveSet),
    desired: &DesiredStack,
    foreign: &ForeignObjects,
    brake: &Brake,
) -> Vec<Hold> {
    let inputs = PlanInputs {
        inventory,
        live,
        unreadable: &UnreadableKinds::default(),
        last_applied: None,
        claims: &Claims::default(),
        drift: DriftMode::Correct,
        releases_all: false,
        is_impersonated: false,
        ready: None,
    };
    find_excess(plan, inputs, desired, brake).into_iter().chain(find_single_holds(plan, foreign, brake)).collect()
}

/// Returns the holds of a plan that deletes objects of these kinds.
fn holds_of(kinds: &[(&str, usize)], kept: usize, goal: &Goal, foreign: &ForeignObjects, brake: Brake) -> Vec<String> {
    let names =
        kinds.iter().flat_map(|(kind, count)| (0..*count).map(move |number| (*kind, format!("{kind}-{number}"))));
    let entries: Vec<Entry> = names.map(|(kind, name)| entry(kind, &name.to_lowercase(), Some("7"))).collect();
    let deletes = entries
        .iter()
        .map(|entry| Delete { entry: entry.clone(), uid: "7".into(), order: DeleteOrder::from_key(&entry.key) })
        .collect();
    let kept = (0..kept).map(|number| entry("ConfigMap", &format!("kept-{number}"), Some("7")));
    let entries: Vec<Entry> = entries.into_iter().chain(kept).collect();
    let exists = |entry: &Entry| existing(entry.key.clone(), "7", owned_by('1', &entry.key));
    let live = live(entries.iter().map(exists));
    // These were never created, so they do not make the stack larger.
    let absent = (0..100).map(|number| entry("ConfigMap", &format!("absent-{number}"), None));
    let all = inventory(entries.into_iter().chain(absent));
    let desired = DesiredStack { goal: goal.clone(), ..present(2, vec![]) };
    find_holds(&Plan { deletes, ..Plan::default() }, (&all, &live), &desired, foreign, &brake)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_revision_that_deletes_too_many_objects_is_held_back() {
    let (present, removed) = (Goal::Present(vec![]), Goal::Removed);
    let many =
        |count, kept, goal: &Goal, brake| holds_of(&[("ConfigMap", count)], kept, goal, &ForeignObjects::new(), brake);
    let brake = Brake::default();
    assert_eq!(many(6, 5, &present, brake), ["the revision would delete 6 of 11 objects"]);
    assert_eq!(many(6, 6, &present, brake), [""; 0], "not more than half");
    assert_eq!(many(5, 0, &present, brake), [""; 0], "not more than five");
    assert_eq!(many(60, 0, &removed, brake), [""; 0], "a removal is itself the approval");
    assert_eq!(many(6, 5, &present, Brake { is_on: false, ..brake }), [""; 0]);
    assert_eq!(many(6, 5, &present, Brake { objects: 6, ..brake }), [""; 0]);
    assert_eq!(many(6, 5, &present, Brake { percent: 60, ..brake }), [""; 0]);
}

#[test]
fn an_approval_is_valid_for_the_objects_that_it_was_given_for() {
    let desired = present(2, vec![]);
    let names: Vec<String> = (0..8).map(|number| format!("a-{number}")).collect();
    let entries: Vec<Entry> = names.iter().map(|name| entry("ConfigMap", name, Some("7"))).collect();
    let live = live(entries.iter().map(|entry| existing(entry.key.clone(), "7", owned_by('1', &entry.key))));
    let to_delete =
        |entry: &Entry| Delete { entry: entry.clone(), uid: "7".into(), order: DeleteOrder::from_key(&entry.key) };
    let plan = |entries: &[Entry]| Plan { deletes: entries.iter().map(to_delete).collect(), ..Plan::default() };
    let mut all = inventory(entries.clone());
    let shown: Vec<_> = entries[..7].iter().map(|entry| entry.key.clone()).collect();
    all.approve_deletes(desired.revision, &shown);
    let is_held = |entries: &[Entry]| {
        !find_holds(&plan(entries), (&all, &live), &desired, &ForeignObjects::new(), &Brake::default()).is_empty()
    };
    assert!(!is_held(&entries[..7]), "the approved ones");
    assert!(!is_held(&entries[1..7]), "the rest of them, after an interruption");
    assert!(is_held(&entries[1..8]), "as many, with another one");
}

#[test]
fn a_delete_that_affects_foreign_objects_or_data_is_held_back_also_in_a_removal() {
    let brake = Brake::default();
    let foreign = ForeignObjects::from([(key("Namespace", "namespace-0"), vec![key("Secret", "of-others")])]);
    let held = holds_of(&[("Namespace", 1), ("Secret", 1)], 9, &Goal::Removed, &foreign, brake);
    let kept = "Namespace namespace-0 is kept: it contains Secret shop/of-others, which does not belong to this stack";
    assert_eq!(held, [kept]);
    let claim = holds_of(&[("PersistentVolumeClaim", 1)], 9, &Goal::Removed, &ForeignObjects::new(), brake);
    let kept = "PersistentVolumeClaim shop/persistentvolumeclaim-0 is kept: its data would be deleted with it";
    assert_eq!(claim, [kept]);
}

#[test]
fn a_plan_is_rendered_with_its_holds_and_deletes_first() {
    let there = |kind: &str, name: &str| existing(key(kind, name), "7", owned_by('1', &key(kind, name)));
    let desired = present(
        2,
        vec![
            object("Deployment", "web"),
            object("ConfigMap", "new"),
            object("Secret", "adopted"),
            object("Namespace", "shop"),
        ],
    );
    let known = inventory([
        entry("Deployment", "web", Some("7")),
        entry("Service", "old", Some("7")),
        entry("ConfigMap", "gone", Some("7")),
        entry("Namespace", "shop", Some("7")),
        entry("PersistentVolumeClaim", "data", Some("7")),
    ]);
    let adopted = existing(key("Secret", "adopted"), "8", Ownership::default());
    let terminating = LiveObject { is_terminating: true, ..there("ConfigMap", "gone") };
    let live = live([
        there("Deployment", "web"),
        there("Service", "old"),
        there("PersistentVolumeClaim", "data"),
        terminating,
        adopted,
    ]);
    let plan = plan(&desired, &known, &live, None).unwrap();
    let held = find_holds(&plan, (&known, &live), &desired, &ForeignObjects::new(), &Brake::default());
    insta::assert_snapshot!(render_plan(&plan, &known, &live, &held, 10_000), @r"
    # PersistentVolumeClaim shop/data is kept: its data would be deleted with it
    - PersistentVolumeClaim shop/data  (waits for an approval)
    - Service shop/old
    - ConfigMap shop/gone  (is already being deleted)
    + Namespace shop  (missing)
    + ConfigMap shop/new  (new)
    ~ Secret shop/adopted  (adopted)
    ~ Deployment shop/web
    ");
}

#[test]
fn text_of_objects_of_the_cluster_adds_no_line_to_a_plan_and_no_escape_sequence() {
    let owner = format!("x) \u{1b}[8m\n# approved by security{}", "y".repeat(1_000));
    let (live, inventory) = (existing(key("Secret", "a"), "8", Ownership::default()), Inventory::default());
    let plan = Plan {
        writes: vec![Write { object: Arc::new(object("Secret", "a")), stage: Stage::Configuration, uid: None }],
        adoptions: BTreeMap::from([(key("Secret", "a"), owner)]),
        ..Plan::default()
    };
    let holds: Vec<Hold> = find_adoption(&plan).into_iter().collect();
    let live = LiveSet::from([(live.key.clone(), live)]);
    let text = render_plan(&plan, &inventory, &live, &holds, 10_000);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(!text.contains('\u{1b}') && text.len() < 600, "{text}");
    assert!(text.contains(r#"stack "x) \u{1b}[8m\n# approved by security"#), "{text}");
}

prop_compose! {
    fn any_ownership()(kind in 0..4u8) -> u8 { kind }
}

proptest! {
    #[test]
    fn a_plan_is_safe_in_every_state_of_the_cluster(
        declared in prop::collection::btree_set(0..12usize, 0..8),
        known in prop::collection::btree_map(0..12usize, prop::option::of(0..4u8), 0..10),
        found in prop::collection::btree_map(0..12usize, (0..4u8, any_ownership(), any::<bool>(), any::<bool>()), 0..12),
    ) {
        let name = |number: &usize| format!("object-{number}");
        let desired = present(3, declared.iter().map(|number| object("ConfigMap", &name(number))).collect());
        let entries = known.iter().map(|(number, uid)| {
            entry("ConfigMap", &name(number), uid.map(|uid| uid.to_string()).as_deref())
        });
        let inventory = inventory(entries);
        let live = live(found.iter().map(|(number, (uid, ownership, has_owner_reference, is_terminating))| {
            let key = key("ConfigMap", &name(number));
            let ownership = match ownership {
                0 => Ownership::default(),
                1 => owned_by('1', &key),
                2 => owned_by('2', &key),
                _ => Ownership { stack: Some(stack('1').to_string()), object: Some("a copy".into()), stack_label: None },
            };
            LiveObject {
                owners: has_owner_reference.then(owner).into_iter().collect(),
                is_terminating: *is_terminating,
                ..existing(key, &uid.to_string(), ownership)
            }
        }));
        let Ok(plan) = plan(&desired, &inventory, &live, None) else { return Ok(()) };
        for write in &plan.writes {
            prop_assert!(plan.inventory_ahead.get(&write.object.key).is_some(), "written before it was in the inventory");
        }
        for delete in &plan.deletes {
            let object = &live[&delete.entry.key];
            prop_assert_eq!(&object.uid, &delete.uid);
            prop_assert!(inventory.get(&object.key).is_some(), "deleted an object that is not in the inventory");
            prop_assert!(object.owners.is_empty() && object.ownership.other_owner(stack('1'), &object.key).is_none());
            let same = delete.entry.uid.as_deref() == Some(object.uid.as_str());
            prop_assert!(same || object.ownership.proves_owner(stack('1'), &object.key), "deleted without a proof");
            prop_assert!(plan.inventory_ahead.get(&object.key).is_some(), "removed from the inventory before it was gone");
        }
    }
}
