//! Readiness rules in CEL.

use serde_json::{Value, json};
use sindri_health::{Health, HealthState, assess};

use crate::with_rule;

fn status() -> Value {
    json!({
        "phase": "Bound",
        "ready": 2,
        "large": 9_007_199_254_740_993_u64,
        "huge": u64::MAX,
        "share": 0.5,
        "enabled": true,
        "nothing": null,
        "text": "größe",
        "number": "17",
        "list": [1, 2, 3],
        "conditions": [{ "type": "Ready", "status": "True" }, { "type": "Synced", "status": "False", "count": 3 }],
        "labels": { "b": "2", "a": "1" },
    })
}

fn health(rule: &str) -> Health {
    assess(&with_rule(rule, status()))
}

#[test]
fn valid_rules_are_true() {
    for rule in [
        r#"object.status.phase == "Bound""#,
        "self.status.phase == 'Bound' && object.kind == 'Thing'",
        "object.status.ready >= 2 && object.status.ready < 2.5 && 2u == object.status.ready",
        "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "object.status.conditions.all(c, c.status in ['True', 'False'])",
        "object.status.conditions.exists_one(c, c.status == 'True')",
        "object.status.conditions.filter(c, has(c.count)).map(c, c.count) == [3]",
        "object.status.conditions.map(c, has(c.count), c.type)[0] == 'Synced'",
        "object.status.conditions.exists(c, c.count == 3)",
        "!(object.status.conditions.all(c, c.count == 4))",
        "has(object.status.phase) && !has(object.status.missing)",
        "!has(object.status.missing) || object.status.missing == 1",
        "object.status.missing == 1 || object.status.ready == 2",
        "!(object.status.missing == 1 && object.status.ready == 3)",
        "object.status.enabled ? true : object.status.missing",
        "object.status.labels.map(k, k) == ['a', 'b']",
        "object.status.labels['a'] == '1' && 'b' in object.status.labels && !('c' in object.status.labels)",
        "size(object.status.text) == 5 && object.status.list.size() == 3 && size(object.status.labels) == 2",
        "object.status.text.startsWith('gr') && object.status.text.endsWith('ße') && object.status.text.contains('ö')",
        "int(object.status.number) + 1 == 18 && string(17) == object.status.number && double('0.5') == object.status.share",
        "uint(object.status.ready) == 2u && int(2.9) == 2 && string(true) == 'true'",
        "object.status.nothing == null && object.status.phase != null",
        "1 + 2 * 3 - 4 / 2 == 5 && 7 % 4 == 3 && -7 / 2 == -3 && 0.5 * 2.0 == 1.0 && -(-1) == 1",
        "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && {'a': [1, 2]} == {'a': [1, 2]}",
        "object.status.large > 9007199254740992.0 && object.status.huge > object.status.large",
        "object.status.huge != 18446744073709551616.0 && 'a' < 'b' && false < true && 1 < 1.5 && -1.5 < -1",
        "[[1, 2], [3]].all(inner, inner.exists(object, object > 1))",
        "dyn(1) != '1' && dyn([1]) != 'a' && dyn({}) != [] && [1, 2] != [1] && {'a': 1} != {'b': 1}",
        "object.status.text.matches('^gr.*') && timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z')",
        "object.status.?missing.orValue(1) == 1 && quantity('1Gi').isGreaterThan(quantity('1G'))",
        "// a comment\nobject.status.ready == 2 // another",
    ] {
        let health = health(rule);
        assert_eq!(
            (health.state, health.reason.as_str()),
            (HealthState::Ready, "RuleHolds"),
            "{rule}: {}",
            health.message
        );
    }
}

#[test]
fn an_evaluation_error_means_progressing_and_names_the_missing_field() {
    for (rule, words) in [
        ("object.status.missing.deep == 1", "no such key: missing"),
        ("has(object.status.phase.deep)", "no such overload"),
        ("object.status.list[3] == 1", "index out of bounds"),
        ("object.status.list[-1] == 1", "index out of bounds"),
        ("object.status.labels['c'] == '1'", "no such key"),
        ("object.status.phase > 1", "no such overload"),
        ("object.status.phase + 1 == 1", "no such overload"),
        ("object.status.ready + 0.5 == 2.5", "no such overload"),
        ("!object.status.ready", "no such overload"),
        ("-object.status.phase == 1", "no such overload"),
        ("object.status.list.contains('1')", "no such overload"),
        ("object.status.ready / 0 == 1", "division by zero"),
        ("9223372036854775807 + object.status.ready > 0", "integer overflow"),
        ("-9223372036854775808 / -1 > 0", "integer overflow"),
        ("-(-9223372036854775808) > 0", "integer overflow"),
        ("int(object.status.phase) == 1", "type conversion error from 'string' to 'int'"),
        ("int(1e30) == 1", "integer overflow"),
        ("object.status.phase && true", "no such overload"),
        ("object.status.ready.all(x, true)", "got 'int', expected iterable type"),
        ("1 in object.status.phase", "no such overload"),
        ("{'a': 1, 'a': 2} == {}", "insert failed: a key already exists"),
        ("object.status.conditions.all(c, c.count == 3)", "no such key: count"),
        ("object.status.conditions.exists_one(c, c.count == 3)", "no such key: count"),
    ] {
        let health = health(rule);
        assert_eq!((health.state, health.reason.as_str()), (HealthState::Progressing, "RuleNotEvaluated"), "{rule}");
        assert_eq!(health.message, format!("{words}: {rule}"));
    }
}

#[test]
fn an_invalid_rule_fails_with_line_and_column() {
    for (rule, place) in [
        ("object.status.phase = 'Bound'", "line 1, column 21: "),
        ("true &&\n  status.phase == 'Bound'", "line 2, column 3: undeclared reference to 'status'"),
        ("object.status.phase.unknown('B.*')", "line 1, column 28: undeclared reference to 'unknown'"),
        ("timestamp('2026-01-01T00:00:00Z') > 1", "line 1, column 35: found no matching overload for '_>_'"),
        ("[1].all(x + 1, true)", "line 1, column 11: argument must be a simple name"),
        ("[1].all(x, y)", "line 1, column 12: undeclared reference to 'y'"),
        ("[1].all(x, true) && x", "line 1, column 21: undeclared reference to 'x'"),
        ("[1].all(x, true, true)", "line 1, column 12: argument must be a simple name"),
        ("has(object)", "line 1, column 5: invalid argument to has() macro"),
        ("Thing{a: 1} == 1", "line 1, column 6: undeclared reference to 'Thing'"),
        ("object.?status == 1", "line 1, column 16: found no matching overload for '_==_'"),
        ("object.status.list.contains(1)", "line 1, column 28: found no matching overload for 'contains'"),
        ("", "line 1, column 1: "),
    ] {
        let health = health(rule);
        assert_eq!((health.state, health.reason.as_str()), (HealthState::Failing, "RuleInvalid"), "{rule}");
        let expected = format!("sindri.dev/ready, {place}");
        assert!(health.message.starts_with(&expected), "{rule}: {}", health.message);
    }
}

#[test]
fn no_message_about_a_rule_contains_a_value_of_a_secret() {
    for rule in [
        "object.data.password == 1 / 0",
        "int(object.data.password) == 1",
        "object.data[object.data.password] == 1",
        "object.data.password > 1",
        "object.data.password",
        "[object.data.password][5]",
        "object.data.all(k, object.data[k].nothing)",
        "object.data.password.all(x, x)",
        "{object.data.password: 1, object.data.password: 2}",
        "object.data.password == 'x'",
    ] {
        let annotations = json!({ sindri_health::READY_ANNOTATION: rule });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key", "annotations": annotations }, "data": { "password": "aHVudGVyMg" } });
        let health = assess(&secret);
        assert_ne!(health.state, HealthState::Ready, "{rule}");
        assert!(!health.message.contains("aHVudGVyMg"), "{}", health.message);
    }
}
