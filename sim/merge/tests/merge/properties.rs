//! Properties of apply over generated documents, and a table of its rules.

use proptest::prelude::*;
use serde_json::{Value, json};
use sindri_merge::{ApplyError, FieldSet, PathElement, Shape, Writer, apply, extract, track_update};

use crate::shapes::{self, deployment};

fn writer<'a>(manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer { manager, api_version: "apps/v1", subresource: "", now, blank: &Value::Null }
}

fn fields_of(object: &Value, manager: &str) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    entries.iter().find(|entry| entry["manager"] == manager).map(|entry| entry["fieldsV1"].clone())
}

/// Deployments with a few fields, keyed lists, sets and maps, each of which may be missing.
fn document() -> impl Strategy<Value = Value> {
    let names = prop::collection::btree_map("[ab]", "[xy]", 0..3);
    let containers = prop::collection::btree_map("[abc]", ("[uv]", prop::option::of(1_u16..3)), 0..3);
    let finalizers = prop::collection::btree_set("[pq]", 0..3);
    (names.clone(), names, containers, finalizers, prop::option::of(0_u8..3)).prop_map(
        |(labels, annotations, containers, finalizers, replicas)| {
            let containers: Vec<Value> = containers
                .into_iter()
                .map(|(name, (image, port))| match port {
                    None => json!({"name": name, "image": image}),
                    Some(port) => {
                        json!({"name": name, "image": image, "ports": [{"containerPort": port}]})
                    }
                })
                .collect();
            let mut object = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "labels": labels, "annotations": annotations},
                "spec": {"template": {"spec": {"containers": containers}}},
            });
            if !finalizers.is_empty() {
                object["metadata"]["finalizers"] = json!(finalizers);
            }
            if let Some(replicas) = replicas {
                object["spec"]["replicas"] = json!(replicas);
            }
            object
        },
    )
}

/// True if `whole` has every value of `part`.
fn includes(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|whole| includes(whole, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|item| whole.iter().any(|whole| includes(whole, item)))
        }
        _ => whole == part,
    }
}

/// True if each path, or a path below it, is in `present`. (An owned empty map may have gained content since.)
fn contains_all(paths: &FieldSet, present: &FieldSet) -> bool {
    let present = present.paths();
    paths.paths().iter().all(|path| present.iter().any(|other| other.starts_with(path)))
}

/// Returns the second document without the fields that the first has too, identity aside.
fn without_shared_fields(first: &Value, second: &Value) -> Value {
    let mut rest = second.clone();
    let strip = |rest: &mut Value, pointer: &str| {
        let known = first.pointer(pointer).cloned().unwrap_or_default();
        match (rest.pointer_mut(pointer), known) {
            (Some(Value::Object(map)), Value::Object(known)) => map.retain(|name, _| !known.contains_key(name)),
            (Some(Value::Array(list)), Value::Array(known)) => {
                list.retain(|item| {
                    known.iter().all(|known| known["name"] != item["name"] || known != item && known["name"].is_null())
                });
            }
            _ => {}
        }
    };
    for pointer in
        ["/metadata/labels", "/metadata/annotations", "/metadata/finalizers", "/spec/template/spec/containers"]
    {
        strip(&mut rest, pointer);
    }
    if let Some(spec) = rest["spec"].as_object_mut().filter(|_| first["spec"].get("replicas").is_some()) {
        spec.remove("replicas");
    }
    without_empty(&rest)
}

/// Removes empty maps and lists from a document.
fn without_empty(document: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    match document {
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

/// Sorts every list of a document.
fn sort_lists(document: &Value) -> Value {
    match document {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), sort_lists(value))).collect(),
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(sort_lists).collect();
            list.sort_by_key(ToString::to_string);
            Value::Array(list)
        }
        other => other.clone(),
    }
}

fn is_ownable(path: &[PathElement]) -> bool {
    let words: Vec<String> = path.iter().map(ToString::to_string).collect();
    !matches!(
        words.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        [".apiVersion" | ".kind"] | [".metadata"] | [".metadata", ".name" | ".namespace"]
    )
}

fn force_apply(live: Option<&Value>, applied: &Value, manager: &str, now: &str) -> Value {
    apply(&deployment(), live, applied.clone(), &writer(manager, now), true).expect("forced applies have no conflicts")
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(first in document(), second in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "two", "t2");
        prop_assert_eq!(&force_apply(Some(&live), &second, "two", "t3"), &live);
    }

    #[test]
    fn a_forced_apply_sets_all_declared_values(first in document(), second in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "two", "t2");
        prop_assert!(includes(&live, &second), "{live:#} lacks parts of {second:#}");
    }

    #[test]
    fn fields_owned_by_another_manager_and_not_declared_again_are_kept(first in document(), second in document(), third in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "two", "t2");
        let live = force_apply(Some(&live), &third, "two", "t3");
        // The object still has every field that "one" still owns, though maybe with another declarer's value.
        let owned = FieldSet::from_fields_v1(&fields_of(&live, "one").unwrap_or(json!({}))).expect("our own format");
        let present = deployment().fields_of(&live);
        prop_assert!(contains_all(&owned, &present), "{live:#}");
        // Fields that "one" declared and neither later declaration has are unchanged.
        let declared = deployment().fields_of(&first);
        let later = deployment().fields_of(&second).union(&deployment().fields_of(&third));
        let untouched = declared.difference(&later);
        prop_assert!(contains_all(&untouched, &present), "{live:#} lost fields of {first:#}");
    }

    #[test]
    fn an_applier_owns_exactly_what_it_declared_last(first in document(), second in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "one", "t2");
        let owned = FieldSet::from_fields_v1(&fields_of(&live, "one").unwrap_or(json!({}))).expect("our own format");
        let alone = force_apply(None, &second, "one", "t2");
        let expected = FieldSet::from_fields_v1(&fields_of(&alone, "one").unwrap_or(json!({}))).expect("our own format");
        prop_assert_eq!(owned, expected);
    }

    #[test]
    fn a_sole_applier_removes_everything_it_no_longer_declares(first in document(), second in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "one", "t2");
        let present = deployment().fields_of(&live);
        let declared = deployment().fields_of(&second);
        let gone = deployment().fields_of(&first).difference(&declared);
        prop_assert!(gone.intersection(&present).is_empty(), "{live:#} keeps fields of {first:#}");
    }

    #[test]
    fn applies_of_different_fields_commute(first in document(), second in document()) {
        // An empty map and its content count as the same field, so empty maps are removed.
        let (first, second) = (without_empty(&first), without_shared_fields(&first, &second));
        let one_first = force_apply(Some(&force_apply(None, &first, "one", "t")), &second, "two", "t");
        let two_first = force_apply(Some(&force_apply(None, &second, "two", "t")), &first, "one", "t");
        // List items without a declared order stay in the order of their creation.
        prop_assert_eq!(sort_lists(&one_first), sort_lists(&two_first));
    }

    #[test]
    fn a_forced_apply_becomes_the_only_owner_of_what_it_changed(first in document(), second in document(), third in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "two", "t2");
        let after = force_apply(Some(&live), &third, "three", "t3");
        let changes = sindri_merge::compare(&deployment(), &live, &after);
        let owned = |manager: &str| {
            FieldSet::from_fields_v1(&fields_of(&after, manager).unwrap_or(json!({}))).expect("our own format")
        };
        let changed = changes.modified.union(&changes.added);
        for other in ["one", "two"] {
            prop_assert!(owned(other).intersection(&changed).is_empty(), "{other} still owns a changed field: {after:#}");
        }
        let changed_by_third = deployment().fields_of(&third).intersection(&changed);
        let owned_by_third = owned("three");
        // Identity fields have no owner.
        let lost: Vec<_> = changed_by_third.difference(&owned_by_third).paths().into_iter().filter(|path| is_ownable(path)).collect();
        prop_assert!(lost.is_empty(), "{lost:?}");
    }

    #[test]
    fn extract_returns_the_last_declaration(first in document(), second in document()) {
        let live = force_apply(None, &first, "one", "t1");
        let live = force_apply(Some(&live), &second, "two", "t2");
        let extracted = extract(&deployment(), &live, "two", "").expect("our own format").expect("it has applied");
        prop_assert_eq!(&without_empty(&extracted), &without_empty(&second));
        let again = force_apply(Some(&live), &extracted, "two", "t3");
        prop_assert_eq!(&again, &live, "applying it again changes nothing");
        prop_assert_eq!(extract(&deployment(), &live, "unknown", ""), Ok(None));
    }

    #[test]
    fn fields_v1_round_trips(document in document()) {
        let fields = deployment().fields_of(&document);
        prop_assert_eq!(FieldSet::from_fields_v1(&fields.to_fields_v1()), Ok(fields));
    }
}

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

fn apply_config_map(
    live: Option<&Value>,
    data: Value,
    manager: &str,
    now: &str,
    force: bool,
) -> Result<Value, ApplyError> {
    let writer = Writer { manager, api_version: "v1", subresource: "", now, blank: &Value::Null };
    apply(&shapes::config_map(), live, config_map(data), &writer, force)
}

#[test]
fn another_value_conflicts_and_the_same_value_is_shared() {
    let live = apply_config_map(None, json!({"a": "1", "b": "1"}), "one", "t1", false).expect("created");
    let error = apply_config_map(Some(&live), json!({"a": "2"}), "two", "t2", false).expect_err("conflict");
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    let shared = apply_config_map(Some(&live), json!({"a": "1"}), "two", "t2", false).expect("same value");
    let both = json!({"f:data": {"f:a": {}}});
    assert_eq!(fields_of(&shared, "two"), Some(both));
    // The first manager stops declaring the field; the second still owns it.
    let left = apply_config_map(Some(&shared), json!({"b": "1"}), "one", "t3", false).expect("no conflict");
    assert_eq!(left["data"], json!({"a": "1", "b": "1"}));
}

#[test]
fn several_conflicts_are_grouped_by_manager() {
    let live = apply_config_map(None, json!({"a": "1", "b": "1"}), "one", "t1", false).expect("created");
    let error = apply_config_map(Some(&live), json!({"a": "2", "b": "2"}), "two", "t2", false).expect_err("conflict");
    assert_eq!(error.to_string(), "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b");
}

#[test]
fn force_moves_ownership() {
    let live = apply_config_map(None, json!({"a": "1", "b": "1"}), "one", "t1", false).expect("created");
    let live = apply_config_map(Some(&live), json!({"a": "2"}), "two", "t2", true).expect("forced");
    assert_eq!(live["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(fields_of(&live, "one"), Some(json!({"f:data": {"f:b": {}}})));
}

#[test]
fn an_update_owns_what_it_changed_and_conflicts_name_its_api_version() {
    let shape = shapes::config_map();
    let live = apply_config_map(None, json!({"a": "1", "b": "1"}), "one", "t1", false).expect("created");
    let mut edited = live.clone();
    edited["data"]["a"] = json!("9");
    let editor = Writer { manager: "kubectl-edit", api_version: "v1", subresource: "", now: "t2", blank: &Value::Null };
    let live = track_update(&shape, Some(&live), &edited, &editor).expect("tracked");
    assert_eq!(fields_of(&live, "kubectl-edit"), Some(json!({"f:data": {"f:a": {}}})));
    assert_eq!(fields_of(&live, "one"), Some(json!({"f:data": {"f:b": {}}})));
    let error = apply_config_map(Some(&live), json!({"a": "1", "b": "1"}), "one", "t3", false).expect_err("conflict");
    assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .data.a");
}

#[test]
fn an_update_without_changes_leaves_the_object_byte_for_byte() {
    let shape = shapes::config_map();
    let live = apply_config_map(None, json!({"a": "1"}), "one", "t1", false).expect("created");
    let editor = Writer { manager: "kubectl-edit", api_version: "v1", subresource: "", now: "t2", blank: &Value::Null };
    assert_eq!(track_update(&shape, Some(&live), &live, &editor), Ok(live));
}

#[test]
fn fields_of_an_untracked_object_are_owned_by_before_first_apply() {
    let live = config_map(json!({"a": "1", "b": "1"}));
    let error = apply_config_map(Some(&live), json!({"a": "2"}), "one", "t1", false).expect_err("conflict");
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
}

#[test]
fn the_eleventh_updater_causes_the_oldest_to_be_merged() {
    let shape = shapes::config_map();
    let mut live = config_map(json!({}));
    for number in 0..12 {
        // Tracking starts at creation or not at all.
        let before = (number > 0).then_some(&live);
        let mut edited = live.clone();
        edited["data"][format!("k{number:02}")] = json!("v");
        let (manager, now) = (format!("m{number:02}"), format!("t{number:02}"));
        let editor = Writer { manager: &manager, api_version: "v1", subresource: "", now: &now, blank: &Value::Null };
        live = track_update(&shape, before, &edited, &editor).expect("tracked");
    }
    let entries = live["metadata"]["managedFields"].as_array().expect("a list");
    assert_eq!(entries.len(), 10);
    let ancient = json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}});
    assert_eq!(fields_of(&live, "ancient-changes"), Some(ancient));
}

#[test]
fn lists_of_custom_resources_merge_by_their_schema() {
    let shape = Shape::from_schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                  "items": {"type": "object", "properties": {"id": {"type": "string"}}}},
        "plain": {"type": "array", "items": {"type": "string"}},
    }}}}));
    let part = |spec: Value| json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec});
    let live = apply(&shape, None, part(json!({"parts": [{"id": "a"}], "plain": ["1"]})), &writer("one", "t1"), false);
    let live = live.expect("created");
    let live = apply(&shape, Some(&live), part(json!({"parts": [{"id": "b"}]})), &writer("two", "t2"), false);
    assert_eq!(live.expect("merged")["spec"], json!({"parts": [{"id": "a"}, {"id": "b"}], "plain": ["1"]}));
}
