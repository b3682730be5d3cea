//! Values with shapes from a schema.

use serde_json::{Value, json};
use sindri_cel::{Cel, Program, Shape, Type, escape};

fn holds(schema: &Value, object: &Value, rule: &str) -> bool {
    let shape = Shape::from_schema(schema, false);
    let declared = Type::from_shape(&shape).expect("an object has a type");
    let program = Program::compile(rule, &[("self", declared)]).expect(rule);
    matches!(program.evaluate(&[("self", Cel::with_shape(object, &shape))]), Ok(Cel::Bool(true)))
}

#[test]
fn texts_are_times_and_bytes_and_numbers_are_doubles() {
    let schema = json!({"type": "object", "properties": {
        "when": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"}, "raw": {"type": "string", "format": "byte"},
        "share": {"type": "number"}, "a.b": {"type": "string"}, "nothing": {"type": "string", "nullable": true},
    }});
    let object = json!({
        "when": "2026-01-31T12:00:00Z", "day": "2026-01-30", "wait": "3 days", "raw": "YWJj", "share": 2, "a.b": "x", "nothing": null,
    });
    for rule in [
        "self.when.getFullYear() == 2026 && self.day < self.when",
        "self.wait == duration('72h')",
        "self.raw == b'abc' && string(self.raw) == 'abc'",
        "self.share / 4.0 == 0.5",
        "self.a__dot__b == 'x' && !has(self.nothing)",
    ] {
        assert!(holds(&schema, &object, rule), "{rule}");
    }
}

#[test]
fn sets_and_lists_by_keys_are_equal_in_any_order() {
    let schema = json!({"type": "object", "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "properties": {"id": {"type": "string"}, "count": {"type": "integer"}}}},
    }});
    let object = json!({"set": ["a", "b"], "list": ["a", "b"], "parts": [{"id": "x", "count": 1}, {"id": "y"}]});
    for (rule, expected) in [
        ("self.set == ['b', 'a']", true),
        ("self.list == ['b', 'a']", false),
        ("self.parts == [self.parts[1], self.parts[0]]", true),
        ("(self.set + ['c', 'a']).size() == 3", true),
        ("(self.list + ['c', 'a']).size() == 4", true),
        ("(self.parts + self.parts).size() == 2", true),
    ] {
        assert_eq!(holds(&schema, &object, rule), expected, "{rule}");
    }
}

#[test]
fn names_are_escaped() {
    for (name, expected) in [
        ("plain", Some("plain")),
        ("a-b", Some("a__dash__b")),
        ("a.b/c", Some("a__dot__b__slash__c")),
        ("a__b", Some("a__underscores__b")),
        ("namespace", Some("__namespace__")),
        ("1a", None),
        ("a b", None),
        ("", None),
    ] {
        assert_eq!(escape(name).as_deref(), expected, "{name}");
    }
}
