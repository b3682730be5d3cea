//! Compile errors.

use serde_json::json;
use sindri_cel::{Program, Shape, Type};

use crate::evaluate;

fn typed() -> Type {
    let schema = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "color": {"type": "string"}, "port": {"x-kubernetes-int-or-string": true},
        "tags": {"type": "array", "items": {"type": "string"}}, "when": {"type": "string", "format": "date-time"},
        "options": {"type": "object", "additionalProperties": {"type": "integer"}}, "a-b": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    Type::from_shape(&Shape::from_schema(&schema, true)).expect("an object has a type")
}

#[test]
fn rules_are_checked_against_the_schema() {
    for (rule, words) in [
        ("self.size == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.missing == 1", "undefined field 'missing'"),
        ("self.free.x == 1", "undefined field 'x'"),
        ("self.tags.all(x, x > 1)", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.tags.all(x, x)", "expected type 'bool' but found 'string'"),
        ("self.size.startsWith('a')", "found no matching overload for 'startsWith' applied to 'int.(string)'"),
        ("self.options.a.b == 1", "type 'int' does not support field selection"),
        ("self.when > '2026'", "found no matching overload for '_>_' applied to '(timestamp, string)'"),
        ("timestamp('yesterday') > self.when", "invalid timestamp argument"),
        ("self.color.matches('(')", "invalid matches argument"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("other == 1", "undeclared reference to 'other' (in container '')"),
        ("self.color == null", "found no matching overload for '_==_' applied to '(string, null)'"),
    ] {
        let issues = Program::compile(rule, &[("self", typed())]).expect_err(rule);
        assert_eq!(issues.first().map(|issue| issue.message.as_str()), Some(words), "{rule}");
    }
    for rule in [
        "self.size > 1.5",
        "self.port == 'http' || self.port == 80",
        "self.a__dash__b == 'x'",
        "self.metadata.name.startsWith('a') && self.kind == 'Thing'",
        "self.when + duration('1h') > timestamp('2026-01-01T00:00:00Z')",
        "self.tags.exists(x, x in ['a', 'b']) && self.tags.isSorted()",
        "self.?color.orValue('') == ''",
        "'%s %d'.format([self.color, self.size]) == ''",
    ] {
        let program = Program::compile(rule, &[("self", typed())]);
        assert_eq!(program.map(|program| program.output().clone()), Ok(Type::Bool), "{rule}");
    }
}

#[test]
fn an_error_is_shown_with_its_position() {
    let issues = Program::compile("self.size > 1 &&\n  self.missing == 2", &[("self", typed())]).expect_err("a field");
    let expected = "ERROR: <input>:2:7: undefined field 'missing'\n |   self.missing == 2\n | ......^";
    assert_eq!(issues.to_string(), expected);
    let issues = Program::compile("self.größe == 1", &[("self", typed())]).expect_err("a letter");
    assert!(issues.to_string().starts_with("ERROR: <input>:1:8: Syntax error: token recognition error"), "{issues}");
}

#[test]
fn an_invalid_rule_is_rejected() {
    for rule in ["", "self.", "(", "1 +", "'", "self.x = 1", "a b", "has(self)", "[1].all(1, true)", "@in", "in"] {
        assert!(evaluate(rule).starts_with("refused: "), "{rule}: {}", evaluate(rule));
    }
    let deep = format!("{}1{}", "(".repeat(400), ")".repeat(400));
    assert_eq!(evaluate(&deep), "refused: nested more than 24 deep");
    assert!(evaluate(&"1+".repeat(2_000)).contains("tokens exceed the limit"));
}
