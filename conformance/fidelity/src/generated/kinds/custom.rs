//! Custom resources of the CRDs in `setup.yaml`: every type of list and map, defaults, limits, two versions, a status and a scale.

use serde_json::{Value, json};

use super::core::texts;
use super::kind::{ResourceKind, nothing};
use crate::generated::random::RandomSource;

pub(super) const KINDS: &[ResourceKind] = &[
    ResourceKind {
        name: "Widget",
        api_version: "fidelity.example.com/v1",
        plural: "widgets",
        namespaced: true,
        custom: true,
        subresources: &["status", "scale"],
        content: widget,
        status: widget_status,
        weight: 14,
    },
    ResourceKind {
        name: "Widget",
        api_version: "fidelity.example.com/v2",
        plural: "widgets",
        namespaced: true,
        custom: true,
        subresources: &["status"],
        content: widget,
        status: widget_status,
        weight: 4,
    },
    ResourceKind {
        name: "Gadget",
        api_version: "fidelity.example.com/v1",
        plural: "gadgets",
        namespaced: false,
        custom: true,
        subresources: &[],
        content: gadget,
        status: nothing,
        weight: 5,
    },
];

fn parts(random: &mut RandomSource) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for (id, side) in random.some(&[("x", "left"), ("x", "right"), ("y", "left")], 50) {
        let mut part = json!({ "id": id });
        if side != "left" || random.percent(50) {
            part["side"] = json!(side);
        }
        random.maybe_set(60, &mut part, "count", |random| json!(random.between(0, 3)));
        parts.push(part);
    }
    parts.into()
}

fn widget(random: &mut RandomSource) -> Value {
    let mut spec = json!({});
    random.maybe_set(40, &mut spec, "size", |random| {
        random.one(&[json!(1), json!(2), json!(3), json!(3), json!(99)]).clone()
    });
    random.maybe_set(40, &mut spec, "replicas", |random| json!(random.between(0, 3)));
    random.maybe_set(50, &mut spec, "tags", |random| random.some(&["a", "b", "c"], 55).into());
    random.maybe_set(50, &mut spec, "parts", parts);
    random.maybe_set(40, &mut spec, "plain", |random| random.some(&["p", "q"], 60).into());
    random.maybe_set(30, &mut spec, "objects", |random| json!([{"a": random.one(&["1", "2"])}]));
    random.maybe_set(30, &mut spec, "whole", |random| texts(random, 50));
    random.maybe_set(50, &mut spec, "granular", |random| texts(random, 50));
    random.maybe_set(30, &mut spec, "free", |random| {
        random.one(&[json!({"deep": {"k": "v"}}), json!({"deep": {"l": 1}, "list": [1, 2]}), json!({})]).clone()
    });
    random.maybe_set(25, &mut spec, "color", |random| json!(random.one(&["red", "green", "red", "pink"])));
    random.maybe_set(25, &mut spec, "limit", |random| random.one(&[json!(5), json!("50%"), json!("x")]).clone());
    random.maybe_set(25, &mut spec, "nested", |random| {
        let mut nested = json!({});
        random.maybe_set(50, &mut nested, "on", |random| json!(random.percent(50)));
        random.maybe_set(50, &mut nested, "label", |random| json!(random.one(&["one", "two", ""])));
        nested
    });
    random.maybe_set(10, &mut spec, "maybe", |random| random.one(&[Value::Null, json!("text")]).clone());
    random.maybe_set(10, &mut spec, "ratio", |random| random.one(&[json!(1), json!(0.5), json!(1.25)]).clone());
    random.maybe_set(5, &mut spec, "unknown", |_| json!({"field": 1}));
    let mut widget = json!({ "spec": spec });
    random.maybe_set(15, &mut widget, "status", widget_status);
    widget
}

fn widget_status(random: &mut RandomSource) -> Value {
    let mut status = json!({});
    random.maybe_set(60, &mut status, "replicas", |random| json!(random.between(0, 3)));
    random.maybe_set(30, &mut status, "selector", |_| json!("app=a"));
    random.maybe_set(60, &mut status, "conditions", |random| {
        let types = random.some(&["Ready", "Healthy"], 60);
        let condition =
            |kind: &str, random: &mut RandomSource| json!({"type": kind, "status": random.one(&["True", "False"])});
        types.into_iter().map(|kind| condition(kind, random)).collect::<Vec<_>>().into()
    });
    status
}

fn gadget(random: &mut RandomSource) -> Value {
    let mut gadget = json!({});
    random.maybe_set(60, &mut gadget, "data", |random| texts(random, 60));
    random.maybe_set(30, &mut gadget, "mode", |random| json!(random.one(&["on", "off"])));
    random.maybe_set(20, &mut gadget, "status", |random| texts(random, 50));
    gadget
}
