//! Tables for each rule of the plan, then properties over random states of a cluster.

use proptest::prelude::*;
use serde_json::json;
use sindri_model::{Checksum, Epoch, Sequence, StackId};

use super::planner::*;
use super::*;
use crate::cluster::ownership::{Marks, Owner};
use crate::cluster::{Applied, LiveObject};
use crate::cluster::{Fingerprint, Resource};
use crate::pass::inventory::{Entry, Inventory, Position};
use crate::pass::observe::{Desired, DesiredObject, Goal, LiveSet};
use crate::settings::Brake;
use crate::settings::DriftMode;
use crate::target::claims::Claims;
use sindri_model::{ObjectKey, RevisionId};
use std::collections::BTreeMap;
use std::sync::Arc;

fn stack(digit: char) -> StackId {
    format!("{digit}0000000-0000-4000-8000-000000000000").parse().unwrap()
}

fn revision(digit: char) -> RevisionId {
    format!("{digit}0000000-0000-4000-8000-00000000000f").parse().unwrap()
}

fn resource(kind: &str) -> Arc<Resource> {
    let (group, namespaced) = match kind {
        "Namespace" => ("", false),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", false),
        _ => ("", true),
    };
    Arc::new(Resource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced,
    })
}

fn key(kind: &str, name: &str) -> Arc<ObjectKey> {
    let resource = resource(kind);
    let namespace = resource.namespaced.then(|| "shop".to_owned());
    Arc::new(ObjectKey { group: resource.group.clone(), kind: kind.into(), namespace, name: name.into() })
}

fn object(kind: &str, name: &str) -> DesiredObject {
    let (manifest, ignored) = (json!({}), crate::cluster::ignore::Ignored::default());
    let owner = Arc::new(Owner::new(stack('1'), &Checksum::of("")));
    DesiredObject {
        document: 1,
        key: key(kind, name),
        resource: resource(kind),
        manifest,
        owner,
        ignored,
        replace: false,
    }
}

/// A plan where no other stack declares anything and drift is put right.
fn plan(desired: &Desired, inventory: &Inventory, live: &LiveSet, settled: Option<&Settled>) -> Result<Plan, Refusal> {
    let claims = Claims::default();
    super::plan(desired, Observed { inventory, live, settled, claims: &claims, drift: DriftMode::Correct })
}

fn present(sequence: i64, objects: Vec<DesiredObject>) -> Desired {
    let position = Position { epoch: Epoch(1), sequence: Sequence(sequence) };
    Desired {
        stack: stack('1'),
        revision: revision('1'),
        position,
        goal: Goal::Present(objects.into_iter().map(Arc::new).collect()),
    }
}

fn entry(kind: &str, name: &str, uid: Option<&str>) -> Entry {
    Entry { key: key(kind, name), resource: resource(kind), uid: uid.map(str::to_owned) }
}

fn inventory(entries: impl IntoIterator<Item = Entry>) -> Inventory {
    let mut inventory = Inventory::default();
    entries.into_iter().for_each(|entry| inventory.put(entry));
    inventory
}

fn ours(time: &str) -> Option<Fingerprint> {
    Some(Fingerprint::new(time, "{}"))
}

fn marks_of(owner: char, key: &ObjectKey) -> Marks {
    Marks {
        stack: Some(stack(owner).to_string()),
        object: Some(key.to_string()),
        label: Some(stack(owner).to_string()),
    }
}

fn living(key: Arc<ObjectKey>, uid: &str, marks: Marks) -> LiveObject {
    LiveObject {
        resource: resource(&key.kind),
        key,
        uid: uid.into(),
        version: "1".into(),
        ours: ours("1"),
        marks,
        owned: false,
        deleting: false,
    }
}

fn live(objects: impl IntoIterator<Item = LiveObject>) -> LiveSet {
    objects.into_iter().map(|object| (object.key.clone(), object)).collect()
}

/// What becomes of one inventory entry that is no longer declared.
fn fate(entry: Entry, found: Option<LiveObject>) -> &'static str {
    let known = entry.key.clone();
    let plan = plan(&present(2, vec![]), &inventory([entry]), &live(found), None).unwrap();
    match (plan.deletes.len(), plan.leaving.len(), plan.ahead.get(&known)) {
        (1, 0, Some(_)) => "deleted",
        (0, 1, Some(_)) => "waited for",
        (0, 0, None) => "let go",
        other => panic!("an entry has one fate, not {other:?}"),
    }
}

#[test]
fn an_undeclared_object_is_deleted_only_if_it_is_proved_to_be_ours() {
    let a = key("ConfigMap", "a");
    let known = || entry("ConfigMap", "a", Some("7"));
    let ours = |uid| living(a.clone(), uid, marks_of('1', &a));
    let bare = |uid| living(a.clone(), uid, Marks::default());
    assert_eq!(fate(known(), Some(ours("7"))), "deleted");
    assert_eq!(fate(known(), Some(bare("7"))), "deleted", "its UID proves it, marks or not");
    assert_eq!(fate(known(), None), "let go");
    assert_eq!(fate(known(), Some(bare("8"))), "let go", "re-created by someone else");
    assert_eq!(fate(known(), Some(ours("8"))), "deleted", "re-created by us, killed before we noted it");
    assert_eq!(fate(entry("ConfigMap", "a", None), Some(ours("7"))), "deleted", "written, killed before we noted it");
    assert_eq!(fate(entry("ConfigMap", "a", None), Some(bare("7"))), "let go", "noted, never written");
    assert_eq!(fate(known(), Some(living(a.clone(), "7", marks_of('2', &a)))), "let go", "moved to another stack");
    assert_eq!(fate(known(), Some(LiveObject { owned: true, ..ours("7") })), "let go", "the garbage collector's");
    assert_eq!(fate(known(), Some(LiveObject { deleting: true, ..ours("7") })), "waited for");
    let copied =
        Marks { stack: Some(stack('1').to_string()), object: Some("ConfigMap shop/original".into()), label: None };
    assert_eq!(fate(known(), Some(living(a.clone(), "8", copied))), "let go", "marks that a controller copied");
}

#[test]
fn namespaces_and_definitions_are_written_first_and_deleted_last() {
    let mixed = ["ConfigMap", "CustomResourceDefinition", "Secret", "Namespace"];
    let desired = present(2, mixed.map(|kind| object(kind, "new")).to_vec());
    let old = mixed.map(|kind| entry(kind, "old", Some("7")));
    let there = mixed.map(|kind| living(key(kind, "old"), "7", marks_of('1', &key(kind, "old"))));
    let plan = plan(&desired, &inventory(old), &live(there), None).unwrap();
    let written: Vec<_> = plan.writes.iter().map(|write| write.object.key.kind.as_str()).collect();
    let deleted: Vec<_> = plan.deletes.iter().map(|delete| delete.entry.key.kind.as_str()).collect();
    assert_eq!(written, ["Namespace", "CustomResourceDefinition", "ConfigMap", "Secret"]);
    assert_eq!(deleted[2..], ["CustomResourceDefinition", "Namespace"]);
    assert_eq!(plan.ahead.entries().count(), 8, "everything is in the inventory before the first write");
}

#[test]
fn what_is_settled_is_not_written_again_and_what_changed_is() {
    let (a, b) = (key("ConfigMap", "a"), key("ConfigMap", "b"));
    let desired = present(2, vec![object("ConfigMap", "a"), object("ConfigMap", "b")]);
    let assessed = sindri_health::Assessed::of(&json!({}), &[]);
    let applied = |key: &Arc<ObjectKey>, uid: &str| Applied {
        live: living(key.clone(), uid, marks_of('1', key)),
        assessed: assessed.clone(),
        created: false,
        rewritten: None,
    };
    let objects = BTreeMap::from([(a.clone(), applied(&a, "7")), (b.clone(), applied(&b, "8"))]);
    let settled = Settled { revision: revision('1'), objects };
    let same = live([living(a.clone(), "7", marks_of('1', &a)), living(b.clone(), "8", marks_of('1', &b))]);
    let known = inventory([entry("ConfigMap", "a", Some("7")), entry("ConfigMap", "b", Some("8"))]);
    assert!(plan(&desired, &known, &same, Some(&settled)).unwrap().is_empty());
    assert_eq!(plan(&desired, &known, &same, None).unwrap().writes.len(), 2, "a fresh process writes all");
    let edited = live([
        living(a.clone(), "7", marks_of('1', &a)),
        LiveObject { ours: ours("9"), ..living(b.clone(), "8", marks_of('1', &b)) },
    ]);
    let again = plan(&desired, &known, &edited, Some(&settled)).unwrap();
    assert_eq!(again.writes.iter().map(|write| &write.object.key).collect::<Vec<_>>(), [&b]);
    let other = Settled { revision: revision('2'), ..settled };
    assert_eq!(plan(&desired, &known, &same, Some(&other)).unwrap().writes.len(), 2, "another revision is applied");
}

#[test]
fn a_revision_that_goes_back_is_refused() {
    let mut known = inventory([entry("ConfigMap", "a", Some("7"))]);
    known.begun = Some(Position { epoch: Epoch(1), sequence: Sequence(5) });
    let refused = plan(&present(4, vec![]), &known, &LiveSet::new(), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "revision 4 of epoch 1 is older than revision 5 of epoch 1, which was applied here before; it is not applied"
    );
    assert!(plan(&present(5, vec![]), &known, &LiveSet::new(), None).is_ok());
}

#[test]
fn an_object_that_is_being_deleted_is_not_applied_to() {
    let a = key("ConfigMap", "a");
    let leaving = LiveObject { deleting: true, ..living(a.clone(), "7", marks_of('1', &a)) };
    let known = inventory([entry("ConfigMap", "a", Some("7"))]);
    let refused = plan(&present(2, vec![object("ConfigMap", "a")]), &known, &live([leaving]), None).unwrap_err();
    assert_eq!(refused.to_string(), "1 objects are being deleted; they are applied again once they are gone");
}

#[test]
fn an_object_of_another_stack_is_refused_with_its_name() {
    let a = key("ConfigMap", "a");
    let theirs = live([living(a.clone(), "7", marks_of('2', &a))]);
    let refused = plan(&present(1, vec![object("ConfigMap", "a")]), &Inventory::default(), &theirs, None).unwrap_err();
    assert!(refused.to_string().contains(&stack('2').to_string()), "{refused}");
}

/// A plan with everything that can be different.
fn planned(
    desired: &Desired,
    inventory: &Inventory,
    live: &LiveSet,
    settled: Option<&Settled>,
    claims: &Claims,
    drift: DriftMode,
) -> Result<Plan, Refusal> {
    super::plan(desired, Observed { inventory, live, settled, claims, drift })
}

#[test]
fn an_object_goes_to_the_stack_that_declares_it_now() {
    let a = key("ConfigMap", "a");
    let of_first = live([living(a.clone(), "7", marks_of('1', &a))]);
    let mut claims = Claims::default();
    claims.add(stack('1'), Sequence(4), &Some(Vec::new()));
    claims.add(stack('2'), Sequence(5), &Some(vec![a.clone()]));
    let known = inventory([entry("ConfigMap", "a", Some("7"))]);
    let let_go = planned(&present(4, vec![]), &known, &of_first, None, &claims, DriftMode::Correct).unwrap();
    assert_eq!(let_go.deletes, [], "the other stack wants it");
    assert!(let_go.ahead.get(&a).is_some(), "and until it has it, it is still known");
    let second = Desired { stack: stack('2'), ..present(5, vec![object("ConfigMap", "a")]) };
    let taken = planned(&second, &Inventory::default(), &of_first, None, &claims, DriftMode::Correct).unwrap();
    assert_eq!(taken.writes.len(), 1, "the first one has let go of it");
    claims.add(stack('1'), Sequence(4), &Some(vec![a.clone()]));
    let refused = planned(&second, &Inventory::default(), &of_first, None, &claims, DriftMode::Correct);
    assert!(matches!(refused, Err(Refusal::OwnedByOthers(_))), "the first one still declares it");
    let nowhere = LiveSet::new();
    let later = planned(&second, &Inventory::default(), &nowhere, None, &claims, DriftMode::Correct);
    assert!(matches!(later, Err(Refusal::OwnedByOthers(_))), "of two that declare it the earlier one gets it");
}

#[test]
fn drift_is_put_right_or_told_or_not_looked_at() {
    let a = key("ConfigMap", "a");
    let desired = present(2, vec![object("ConfigMap", "a")]);
    let mut known = inventory([entry("ConfigMap", "a", Some("7"))]);
    known.applied = Some(desired.position);
    let assessed = sindri_health::Assessed::of(&json!({}), &[]);
    let live_then = living(a.clone(), "7", marks_of('1', &a));
    let applied = Applied { live: live_then, assessed, created: false, rewritten: None };
    let settled = Settled { revision: revision('1'), objects: BTreeMap::from([(a.clone(), applied)]) };
    let edited = live([LiveObject { ours: ours("9"), ..living(a.clone(), "7", marks_of('1', &a)) }]);
    let steps = |settled, live: &LiveSet, drift| {
        let plan = planned(&desired, &known, live, settled, &Claims::default(), drift).unwrap();
        (plan.writes.len(), plan.checks.len(), plan.drifted.len())
    };
    let (all, gone) = (Some(&settled), LiveSet::new());
    assert_eq!(steps(all, &edited, DriftMode::Correct), (1, 0, 1));
    assert_eq!(steps(all, &edited, DriftMode::Detect), (0, 0, 1));
    assert_eq!(steps(all, &edited, DriftMode::Off), (0, 0, 0), "nobody looks");
    assert_eq!(steps(all, &gone, DriftMode::Detect), (0, 0, 1), "what is gone has drifted");
    assert_eq!(steps(None, &edited, DriftMode::Correct), (1, 0, 0), "a fresh process cannot tell, and applies");
    assert_eq!(steps(None, &edited, DriftMode::Detect), (0, 1, 0), "or compares");
    assert_eq!(steps(None, &edited, DriftMode::Off), (0, 0, 0));
}

/// What is held back of a plan that deletes these.
fn held(kinds: &[(&str, usize)], kept: usize, goal: &Goal, strangers: &Strangers, brake: Brake) -> Vec<String> {
    let names =
        kinds.iter().flat_map(|(kind, count)| (0..*count).map(move |number| (*kind, format!("{kind}-{number}"))));
    let entries: Vec<Entry> = names.map(|(kind, name)| entry(kind, &name.to_lowercase(), Some("7"))).collect();
    let deletes = entries.iter().map(|entry| Delete { entry: entry.clone(), uid: "7".into() }).collect();
    let all = inventory(
        entries.into_iter().chain((0..kept).map(|number| entry("ConfigMap", &format!("kept-{number}"), None))),
    );
    let (ahead, none) = (Inventory::default(), Vec::new);
    let plan = Plan { ahead, writes: vec![], checks: vec![], deletes, leaving: none(), drifted: none() };
    holds(&plan, &all, goal, strangers, &brake).iter().map(ToString::to_string).collect()
}

#[test]
fn what_deletes_too_much_is_held_back() {
    let (present, removed) = (Goal::Present(vec![]), Goal::Removed);
    let much = |count, kept, goal: &Goal, brake| held(&[("ConfigMap", count)], kept, goal, &Strangers::new(), brake);
    let brake = Brake::default();
    assert_eq!(much(6, 5, &present, brake), ["the revision would delete 6 of 11 objects"]);
    assert_eq!(much(6, 6, &present, brake), [""; 0], "not more than half");
    assert_eq!(much(5, 0, &present, brake), [""; 0], "not more than five");
    assert_eq!(much(60, 0, &removed, brake), [""; 0], "a removal is itself the approval");
    assert_eq!(much(6, 5, &present, Brake { is_on: false, ..brake }), [""; 0]);
    assert_eq!(much(6, 5, &present, Brake { objects: 6, ..brake }), [""; 0]);
    assert_eq!(much(6, 5, &present, Brake { percent: 60, ..brake }), [""; 0]);
}

#[test]
fn what_takes_more_along_is_held_back_by_itself_whoever_asks() {
    let brake = Brake::default();
    let stranger = Strangers::from([(key("Namespace", "namespace-0"), vec![key("Secret", "of-others")])]);
    let told = held(&[("Namespace", 1), ("Secret", 1)], 9, &Goal::Removed, &stranger, brake);
    assert_eq!(told, ["Namespace namespace-0 is kept: it holds Secret shop/of-others, which is not of this stack"]);
    let claim = held(&[("PersistentVolumeClaim", 1)], 9, &Goal::Removed, &Strangers::new(), brake);
    let kept = "PersistentVolumeClaim shop/persistentvolumeclaim-0 is kept: its data would go with it";
    assert_eq!(claim, [kept]);
}

#[test]
fn a_plan_is_printed_as_it_would_be_carried_out() {
    let there = |kind: &str, name: &str| living(key(kind, name), "7", marks_of('1', &key(kind, name)));
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
    let adopted = living(key("Secret", "adopted"), "8", Marks::default());
    let leaving = LiveObject { deleting: true, ..there("ConfigMap", "gone") };
    let live = live([
        there("Deployment", "web"),
        there("Service", "old"),
        there("PersistentVolumeClaim", "data"),
        leaving,
        adopted,
    ]);
    let plan = plan(&desired, &known, &live, None).unwrap();
    let held = holds(&plan, &known, &desired.goal, &Strangers::new(), &Brake::default());
    insta::assert_snapshot!(plan.shown(&known, &live, &held), @r"
    + Namespace shop  (missing)
    + ConfigMap shop/new  (new)
    ~ Secret shop/adopted  (adopted)
    ~ Deployment shop/web
    - Service shop/old
    - PersistentVolumeClaim shop/data  (waits for an approval)
    - ConfigMap shop/gone  (is already being deleted)
    # PersistentVolumeClaim shop/data is kept: its data would go with it
    ");
}

prop_compose! {
    fn any_marks()(kind in 0..4u8) -> u8 { kind }
}

proptest! {
    #[test]
    fn whatever_the_cluster_holds_the_plan_is_safe(
        wanted in prop::collection::btree_set(0..12usize, 0..8),
        known in prop::collection::btree_map(0..12usize, prop::option::of(0..4u8), 0..10),
        there in prop::collection::btree_map(0..12usize, (0..4u8, any_marks(), any::<bool>(), any::<bool>()), 0..12),
    ) {
        let name = |number: &usize| format!("object-{number}");
        let desired = present(3, wanted.iter().map(|number| object("ConfigMap", &name(number))).collect());
        let entries = known.iter().map(|(number, uid)| {
            entry("ConfigMap", &name(number), uid.map(|uid| uid.to_string()).as_deref())
        });
        let inventory = inventory(entries);
        let live = live(there.iter().map(|(number, (uid, marks, owned, deleting))| {
            let key = key("ConfigMap", &name(number));
            let marks = match marks {
                0 => Marks::default(),
                1 => marks_of('1', &key),
                2 => marks_of('2', &key),
                _ => Marks { stack: Some(stack('1').to_string()), object: Some("a copy".into()), label: None },
            };
            LiveObject { owned: *owned, deleting: *deleting, ..living(key, &uid.to_string(), marks) }
        }));
        let Ok(plan) = plan(&desired, &inventory, &live, None) else { return Ok(()) };
        for write in &plan.writes {
            prop_assert!(plan.ahead.get(&write.object.key).is_some(), "written before it was noted");
        }
        for delete in &plan.deletes {
            let object = &live[&delete.entry.key];
            prop_assert_eq!(&object.uid, &delete.uid);
            prop_assert!(inventory.get(&object.key).is_some(), "deleted what it never noted");
            prop_assert!(!object.owned && object.marks.other_owner(stack('1'), &object.key).is_none());
            let same = delete.entry.uid.as_deref() == Some(object.uid.as_str());
            prop_assert!(same || object.marks.prove(stack('1'), &object.key), "deleted without a proof");
            prop_assert!(plan.ahead.get(&object.key).is_some(), "forgotten before it was gone");
        }
    }
}
