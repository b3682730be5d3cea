//! Kinds from the definitions of `ground.yaml`: every type of list and map, defaults, limits, two versions, a status and a
//! scale.

use serde_json::{Value, json};

use super::core::texts;
use super::{Kind, nothing};
use crate::generated::dice::Dice;

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "Widget",
        api_version: "fidelity.example.com/v1",
        plural: "widgets",
        namespaced: true,
        custom: true,
        parts: &["status", "scale"],
        content: widget,
        status: widget_status,
        weight: 14,
    },
    Kind {
        name: "Widget",
        api_version: "fidelity.example.com/v2",
        plural: "widgets",
        namespaced: true,
        custom: true,
        parts: &["status"],
        content: widget,
        status: widget_status,
        weight: 4,
    },
    Kind {
        name: "Gadget",
        api_version: "fidelity.example.com/v1",
        plural: "gadgets",
        namespaced: false,
        custom: true,
        parts: &[],
        content: gadget,
        status: nothing,
        weight: 5,
    },
];

fn parts(dice: &mut Dice) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for (id, side) in dice.some(&[("x", "left"), ("x", "right"), ("y", "left")], 50) {
        let mut part = json!({ "id": id });
        if side != "left" || dice.percent(50) {
            part["side"] = json!(side);
        }
        dice.maybe(60, &mut part, "count", |dice| json!(dice.between(0, 3)));
        parts.push(part);
    }
    parts.into()
}

fn widget(dice: &mut Dice) -> Value {
    let mut spec = json!({});
    dice.maybe(40, &mut spec, "size", |dice| dice.one(&[json!(1), json!(2), json!(3), json!(3), json!(99)]).clone());
    dice.maybe(40, &mut spec, "replicas", |dice| json!(dice.between(0, 3)));
    dice.maybe(50, &mut spec, "tags", |dice| dice.some(&["a", "b", "c"], 55).into());
    dice.maybe(50, &mut spec, "parts", parts);
    dice.maybe(40, &mut spec, "plain", |dice| dice.some(&["p", "q"], 60).into());
    dice.maybe(30, &mut spec, "objects", |dice| json!([{"a": dice.one(&["1", "2"])}]));
    dice.maybe(30, &mut spec, "whole", |dice| texts(dice, 50));
    dice.maybe(50, &mut spec, "granular", |dice| texts(dice, 50));
    dice.maybe(30, &mut spec, "free", |dice| {
        dice.one(&[json!({"deep": {"k": "v"}}), json!({"deep": {"l": 1}, "list": [1, 2]}), json!({})]).clone()
    });
    dice.maybe(25, &mut spec, "color", |dice| json!(dice.one(&["red", "green", "red", "pink"])));
    dice.maybe(25, &mut spec, "limit", |dice| dice.one(&[json!(5), json!("50%"), json!("x")]).clone());
    dice.maybe(25, &mut spec, "nested", |dice| {
        let mut nested = json!({});
        dice.maybe(50, &mut nested, "on", |dice| json!(dice.percent(50)));
        dice.maybe(50, &mut nested, "label", |dice| json!(dice.one(&["one", "two", ""])));
        nested
    });
    dice.maybe(10, &mut spec, "maybe", |dice| dice.one(&[Value::Null, json!("text")]).clone());
    dice.maybe(10, &mut spec, "ratio", |dice| dice.one(&[json!(1), json!(0.5), json!(1.25)]).clone());
    dice.maybe(5, &mut spec, "unknown", |_| json!({"field": 1}));
    let mut widget = json!({ "spec": spec });
    dice.maybe(15, &mut widget, "status", widget_status);
    widget
}

fn widget_status(dice: &mut Dice) -> Value {
    let mut status = json!({});
    dice.maybe(60, &mut status, "replicas", |dice| json!(dice.between(0, 3)));
    dice.maybe(30, &mut status, "selector", |_| json!("app=a"));
    dice.maybe(60, &mut status, "conditions", |dice| {
        let types = dice.some(&["Ready", "Healthy"], 60);
        let condition = |kind: &str, dice: &mut Dice| json!({"type": kind, "status": dice.one(&["True", "False"])});
        types.into_iter().map(|kind| condition(kind, dice)).collect::<Vec<_>>().into()
    });
    status
}

fn gadget(dice: &mut Dice) -> Value {
    let mut gadget = json!({});
    dice.maybe(60, &mut gadget, "data", |dice| texts(dice, 60));
    dice.maybe(30, &mut gadget, "mode", |dice| json!(dice.one(&["on", "off"])));
    dice.maybe(20, &mut gadget, "status", |dice| texts(dice, 50));
    gadget
}
