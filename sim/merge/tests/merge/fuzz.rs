//! Arbitrary input: no schema, object, managed fields, declaration or patch may cause a panic, and every result must be
//! readable.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sindri_merge::{
    FieldSet, Shape, Writer, apply, compare, extract, merge, merge_patch, strategic_patch, track_update,
};

const CASES: u32 = 4_000;

/// Field names that have a meaning somewhere, and short random ones.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "a",
            "b",
            "spec",
            "metadata",
            "name",
            "labels",
            "finalizers",
            "managedFields",
            "apiVersion",
            "kind",
            "$patch",
            "$retainKeys",
            "$setElementOrder/a",
            "$deleteFromPrimitiveList/a",
            "type",
            "properties",
            "items",
            "default",
            "x-kubernetes-list-type",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-map-type",
            "additionalProperties",
            "$ref",
        ])
        .prop_map(str::to_owned),
        ".{0,3}",
    ]
}

fn word() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        "object", "array", "string", "map", "set", "atomic", "granular", "a", "b", "name", "delete", "replace",
        "merge", "",
    ])
    .prop_map(Value::from)
}

/// Any document.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        word(),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Mostly schemas, sometimes any document.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!({"type": "string"})), any_value()];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let properties = prop::collection::btree_map(name(), inner.clone(), 0..4)
            .prop_map(|map| json!({"type": "object", "properties": map}));
        let list = (inner.clone(), word(), prop::collection::vec(name(), 0..3)).prop_map(|(items, list_type, keys)| {
            json!({"type": "array", "items": items, "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": keys})
        });
        let map = (inner, word()).prop_map(
            |(values, map_type)| json!({"type": "object", "additionalProperties": values, "x-kubernetes-map-type": map_type}),
        );
        prop_oneof![properties, list, map]
    })
}

/// `fieldsV1` documents with some malformed path elements.
fn fields() -> impl Strategy<Value = Value> {
    let element = prop_oneof![
        name().prop_map(|name| format!("f:{name}")),
        name().prop_map(|name| format!("v:{}", json!(name))),
        name().prop_map(|name| format!("k:{}", json!({"name": name}))),
        Just(".".to_owned()),
        ".{0,6}",
    ];
    Just(json!({})).prop_recursive(4, 20, 4, move |inner| {
        prop::collection::btree_map(element.clone(), inner, 0..4).prop_map(|map| json!(map))
    })
}

/// Mostly objects with `managedFields`.
fn object() -> impl Strategy<Value = Value> {
    let entry = (prop::sample::select(vec!["Apply", "Update", "", "x"]), fields(), "[mn]").prop_map(
        |(operation, fields, manager)| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields}),
    );
    let entries = prop_oneof![prop::collection::vec(entry, 0..3).prop_map(Value::from), any_value()];
    (any_value(), entries).prop_map(|(mut object, entries)| {
        if let Value::Object(map) = &mut object {
            let metadata = map.entry("metadata").or_insert_with(|| json!({}));
            if let Value::Object(metadata) = metadata {
                metadata.insert("managedFields".to_owned(), entries);
            }
        }
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn no_input_panics_and_every_result_can_be_read(schema in schema(), live in object(), applied in object(), force in any::<bool>()) {
        let shape = Shape::from_schema(&schema);
        let writer = Writer { manager: "m", api_version: "v1", subresource: "", now: "t", blank: &Value::Null };
        let _ = (compare(&shape, &live, &applied), merge(&shape, &live, &applied), merge_patch(&live, &applied));
        let _ = strategic_patch(&shape, &live, &applied);
        if let Ok(applied_object) = apply(&shape, Some(&live), applied.clone(), &writer, force) {
            prop_assert!(extract(&shape, &applied_object, "m", "").is_ok(), "{applied_object}");
            let again = apply(&shape, Some(&applied_object), applied.clone(), &writer, true);
            prop_assert!(again.is_ok(), "{again:?}");
        }
        if let Ok(tracked) = track_update(&shape, Some(&live), &applied, &writer) {
            prop_assert!(extract(&shape, &tracked, "m", "").is_ok(), "{tracked}");
        }
    }

    #[test]
    fn arbitrary_components_are_read(components in prop::collection::btree_map(name(), schema(), 0..4)) {
        let components: Map<String, Value> = components.into_iter().collect();
        prop_assert_eq!(Shape::from_components(&components).len(), components.len());
    }

    #[test]
    fn parsed_fields_v1_round_trips(fields in fields()) {
        if let Ok(set) = FieldSet::from_fields_v1(&fields) {
            prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
        }
    }
}
