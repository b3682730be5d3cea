//! Watches: start, selection, bookmarks and end.

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn a_watch_starts_with_the_existing_objects_or_after_a_resource_version() {
    let mut machine = Machine::new();
    let created = machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    let all = machine.watch(&format!("{CONFIG_MAPS}?watch=true"));
    let later = machine.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", created.resource_version()));
    assert_eq!(machine.events(all), ["ADDED a", "ADDED kube-root-ca.crt"]);
    assert_eq!(machine.events(later), Vec::<String>::new());
    machine.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &json!({"data": {"k": "v"}}));
    machine.post("/api/v1/namespaces/kube-system/configmaps", &config_map("elsewhere", &json!({})));
    machine.delete(&format!("{CONFIG_MAPS}/a"));
    assert_eq!(machine.events(all), ["MODIFIED a", "DELETED a"]);
    assert_eq!(machine.events(later), ["MODIFIED a", "DELETED a"]);
}

#[test]
fn a_label_selector_turns_modifications_into_additions_and_deletions() {
    let mut machine = Machine::new();
    let watch = machine.watch(&format!("{CONFIG_MAPS}?watch=true&labelSelector=on"));
    machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    assert_eq!(machine.events(watch), Vec::<String>::new());
    machine.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &json!({"metadata": {"labels": {"on": ""}}}));
    assert_eq!(machine.events(watch), ["ADDED a"]);
    machine.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &json!({"metadata": {"labels": null}}));
    assert_eq!(machine.events(watch), ["DELETED a"]);
}

#[test]
fn a_watch_that_is_too_old_ends_with_an_error() {
    let mut machine = Machine::new();
    let behind = machine.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=1"));
    machine.server.compact();
    let lines = machine.server.watch_events(behind, machine.now);
    let event: Value = serde_json::from_slice(&lines[0]).expect("a JSON line");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(machine.server.watch_is_closed(behind));
    // History also expires with time.
    let created = machine.post(CONFIG_MAPS, &config_map("a", &json!({})));
    machine.post(CONFIG_MAPS, &config_map("b", &json!({})));
    machine.advance(400_000);
    let aged = machine.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", created.resource_version()));
    assert_eq!(machine.events(aged), ["ERROR"]);
}

#[test]
fn bookmarks_are_sent_each_minute_and_the_timeout_ends_the_stream() {
    let mut machine = Machine::new();
    let watch = machine.watch(&format!(
        "{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=90&resourceVersion={}",
        machine.server.revision()
    ));
    assert_eq!(machine.server.watch_wakes_at(watch), Some(machine.now + jiff::SignedDuration::from_secs(60)));
    machine.advance(60_000);
    assert_eq!(machine.events(watch), ["BOOKMARK"]);
    assert!(!machine.server.watch_is_closed(watch));
    machine.advance(30_000);
    assert_eq!(machine.events(watch), Vec::<String>::new());
    assert!(machine.server.watch_is_closed(watch));
}

#[test]
fn initial_events_end_with_an_annotated_bookmark() {
    let mut machine = Machine::new();
    let watch = machine.watch("/api/v1/namespaces?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    let lines = machine.server.watch_events(watch, machine.now);
    let last: Value = serde_json::from_slice(lines.last().expect("events")).expect("a JSON line");
    assert_eq!((lines.len(), &last["type"]), (5, &json!("BOOKMARK")));
    assert_eq!(last["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
}

#[test]
fn watches_of_a_custom_resource_end_with_its_crd() {
    let mut machine = Machine::new();
    machine.create_gadget_crd();
    machine.post(GADGETS, &gadget("g", &json!({"size": 1})));
    let watch = machine.watch(&format!("{GADGETS}?watch=true"));
    assert_eq!(machine.events(watch), ["ADDED g"]);
    machine.delete(&format!("{CRDS}/gadgets.example.io"));
    machine.advance(1_000);
    assert_eq!(machine.events(watch), ["DELETED g"]);
    assert!(machine.server.watch_is_closed(watch));
    machine.server.close_watch(watch);
    assert_eq!(machine.server.watch_count(), 0);
}
