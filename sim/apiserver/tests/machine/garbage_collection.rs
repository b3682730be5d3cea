//! Owner references: dependents are deleted, deleted first, or orphaned.

use serde_json::{Value, json};

use crate::harness::*;

fn owner(machine: &mut Machine, name: &str) -> Value {
    let created = machine.post(CONFIG_MAPS, &config_map(name, &json!({})));
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": created.uid()})
}

fn dependent(machine: &mut Machine, name: &str, owners: &Value) {
    let mut body = config_map(name, &json!({}));
    body["metadata"]["ownerReferences"] = owners.clone();
    assert_eq!(machine.post(CONFIG_MAPS, &body).status, 201);
}

#[test]
fn dependents_are_deleted_some_time_after_their_owner() {
    let mut machine = Machine::new();
    let reference = owner(&mut machine, "owner");
    dependent(&mut machine, "child", &json!([reference]));
    machine.advance(10_000);
    machine.server.take_journal();
    machine.delete(&format!("{CONFIG_MAPS}/owner"));
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}/child")).status, 200);
    machine.advance(10_000);
    assert_eq!(machine.journal(), ["-Delete configmaps/owner", "-Delete configmaps/child"]);
}

#[test]
fn a_reference_to_an_owner_that_never_existed_deletes_the_dependent() {
    let mut machine = Machine::new();
    let mut reference = owner(&mut machine, "owner");
    reference["uid"] = json!("00000000-0000-4000-8000-000000000000");
    dependent(&mut machine, "child", &json!([reference]));
    machine.advance(10_000);
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}/child")).status, 404);
}

#[test]
fn a_second_owner_keeps_the_dependent() {
    let mut machine = Machine::new();
    let (one, two) = (owner(&mut machine, "one"), owner(&mut machine, "two"));
    dependent(&mut machine, "child", &json!([one, two]));
    machine.delete(&format!("{CONFIG_MAPS}/one"));
    machine.advance(10_000);
    let child = machine.get(&format!("{CONFIG_MAPS}/child"));
    assert_eq!(child.body["metadata"]["ownerReferences"], json!([two]));
}

#[test]
fn foreground_deletion_waits_for_dependents() {
    let mut machine = Machine::new();
    let reference = owner(&mut machine, "owner");
    dependent(&mut machine, "child", &json!([reference]));
    machine.advance(10_000);
    machine.server.take_journal();
    let deleted = machine.delete_with(&format!("{CONFIG_MAPS}/owner"), &json!({"propagationPolicy": "Foreground"}));
    assert_eq!((deleted.status, &deleted.body["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])));
    machine.advance(10_000);
    let journal = machine.journal();
    assert_eq!(journal.first().map(String::as_str), Some("Delete configmaps/owner"));
    assert_eq!(journal.last().map(String::as_str), Some("-Delete configmaps/owner"));
    assert!(journal.contains(&"-Delete configmaps/child".to_owned()), "{journal:?}");
}

#[test]
fn orphaning_removes_the_owner_reference_and_keeps_the_dependent() {
    let mut machine = Machine::new();
    let reference = owner(&mut machine, "owner");
    dependent(&mut machine, "child", &json!([reference]));
    machine.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Orphan"));
    machine.advance(10_000);
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}/owner")).status, 404);
    let child = machine.get(&format!("{CONFIG_MAPS}/child"));
    assert_eq!((child.status, child.body["metadata"].get("ownerReferences")), (200, None));
}

#[test]
fn foreground_deletion_keeps_a_dependent_with_another_owner() {
    let mut machine = Machine::new();
    let (one, two) = (owner(&mut machine, "one"), owner(&mut machine, "two"));
    dependent(&mut machine, "shared", &json!([one, two]));
    machine.delete(&format!("{CONFIG_MAPS}/one?propagationPolicy=Foreground"));
    machine.advance(10_000);
    assert_eq!(machine.get(&format!("{CONFIG_MAPS}/one")).status, 404);
    let shared = machine.get(&format!("{CONFIG_MAPS}/shared"));
    assert_eq!(shared.body["metadata"]["ownerReferences"], json!([two]));
}

#[test]
fn only_a_dependent_that_blocks_its_owner_is_waited_for() {
    for blocks in [true, false] {
        let mut machine = Machine::new();
        let mut reference = owner(&mut machine, "owner");
        reference["blockOwnerDeletion"] = json!(blocks);
        let mut child = config_map("child", &json!({}));
        child["metadata"]["ownerReferences"] = json!([reference]);
        child["metadata"]["finalizers"] = json!(["example.io/wait"]);
        assert_eq!(machine.post(CONFIG_MAPS, &child).status, 201);
        machine.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Foreground"));
        machine.advance(10_000);
        let expected = if blocks { 200 } else { 404 };
        assert_eq!(machine.get(&format!("{CONFIG_MAPS}/owner")).status, expected, "blocks: {blocks}");
        assert!(machine.get(&format!("{CONFIG_MAPS}/child")).body["metadata"]["deletionTimestamp"].is_string());
        // Without its reference the dependent is none.
        let free = json!({"metadata": {"ownerReferences": null}});
        machine.patch(&format!("{CONFIG_MAPS}/child"), MERGE, &free);
        machine.advance(10_000);
        assert_eq!(machine.get(&format!("{CONFIG_MAPS}/owner")).status, 404);
    }
}

#[test]
fn objects_that_own_each_other_are_deleted_in_the_foreground() {
    let mut machine = Machine::new();
    let mut one = owner(&mut machine, "one");
    one["blockOwnerDeletion"] = json!(true);
    dependent(&mut machine, "two", &json!([one]));
    let two = machine.get(&format!("{CONFIG_MAPS}/two"));
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two.uid(), "blockOwnerDeletion": true});
    machine.patch(&format!("{CONFIG_MAPS}/one"), MERGE, &json!({"metadata": {"ownerReferences": [reference]}}));
    machine.delete(&format!("{CONFIG_MAPS}/one?propagationPolicy=Foreground"));
    machine.advance(60_000);
    for name in ["one", "two"] {
        assert_eq!(machine.get(&format!("{CONFIG_MAPS}/{name}")).status, 404, "{name}");
    }
}
