//! Malicious rules: their evaluation terminates within its limits, on a small stack, without a panic.

use serde_json::json;
use sindri_health::{Health, HealthState, RULE_BYTES_MAX, assess};

use crate::with_rule;

/// A quarter of a thread's stack, to leave room for the callers.
const STACK_BYTES: usize = 512 * 1024;

/// Assesses a rule on a thread with a small stack, so that an overflow is noticed here.
fn assess_on_small_stack(rule: String) -> Health {
    let run = move || assess(&with_rule(&rule, json!({ "list": vec![1; 1_000], "text": "x".repeat(100_000) })));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread can be started");
    thread.join().expect("nothing panics")
}

fn assert_rejected(rule: String, reason: &str, expected: &str) {
    let start: String = rule.chars().take(60).collect();
    let health = assess_on_small_stack(rule);
    assert_eq!((health.state, health.reason.as_str()), (HealthState::Failing, reason), "{start}: {}", health.message);
    assert!(health.message.contains(expected), "{start}: {}", health.message);
}

#[test]
fn a_rule_that_is_too_long_is_not_compiled() {
    assert_rejected("a".repeat(RULE_BYTES_MAX + 1), "RuleTooLong", "4097 bytes");
    assert_rejected("(".repeat(RULE_BYTES_MAX), "RuleInvalid", "4096 tokens");
    assert_rejected("a ".repeat(RULE_BYTES_MAX / 2), "RuleInvalid", "2048 tokens");
}

#[test]
fn a_rule_that_is_too_deep_is_not_evaluated() {
    for rule in [
        format!("{}true{}", "(".repeat(400), ")".repeat(400)),
        format!("{}{}", "[".repeat(400), "]".repeat(400)),
        format!("{}1{}", "{'a':".repeat(150), "}".repeat(150)),
        format!("{}1", "true?1:".repeat(240)),
        format!("{}1{}", "int(".repeat(240), ")".repeat(240)),
    ] {
        assert_rejected(rule, "RuleInvalid", "nested more than 24 deep");
    }
    for rule in [
        vec!["1"; 490].join("+"),
        vec!["1"; 490].join("<"),
        vec!["1"; 490].join(" in "),
        format!("object{}", ".a".repeat(490)),
        format!("object{}", "[0]".repeat(320)),
        format!("object{}", ".size()".repeat(240)),
        format!("{}1", "!-".repeat(490)),
    ] {
        let health = assess_on_small_stack(rule.clone());
        assert_eq!(health.state, HealthState::Failing, "{rule}: {}", health.message);
    }
}

#[test]
fn a_rule_that_takes_too_long_is_stopped() {
    let loops =
        (0..12).fold("false".to_owned(), |inner, level| format!("[0,1,2,3,4,5,6,7,8,9].exists(x{level},{inner})"));
    let lists = "object.status.list.all(a, object.status.list.all(b, object.status.list.all(c, a == c)))";
    for rule in [
        loops,
        lists.to_owned(),
        format!("object.status.missing || {lists}"),
        format!("{lists} || true"),
        format!("[object.status.text]{}[0] == ''", ".map(x,x+x)".repeat(40)),
        format!("[[1,1]]{} == []", ".map(x,x+x)".repeat(40)),
        format!("[[1,1]{n}] == [[1,1]{n}]", n = ".map(x,[x,x])".repeat(30)),
        "object.status.list.all(a, object.status.text.contains('y' + 'x') == false)".to_owned(),
        "object.status.list.all(a, size(object.status.text) == 100000)".to_owned(),
        "object.status.list.map(a, object.status.text + 'x') == []".to_owned(),
    ] {
        assert_rejected(rule, "RuleTooCostly", "more than 100000 steps");
    }
}

#[test]
fn an_invalid_rule_is_rejected() {
    for rule in [
        "'",
        "\"",
        "'''",
        "`",
        "\\",
        "'\\",
        "'\\u12'",
        "'\\U00110000'",
        "'\\ud800'",
        "'\\400'",
        "b'\\xff'",
        "0x",
        "1e999999",
        "1e",
        "\u{0}",
        "💥",
        "\u{feff}true",
        "..",
        "a..b",
        "()",
        "[,]",
        "{,}",
        "{:}",
        "?:",
        "@result",
        "@in(1)",
        "_&&_",
        "a.b{",
        "1.2.3",
        "--",
        "//",
        "!",
        "object.",
        "object[",
        "object(",
        "object.all(",
        "in",
        "null.null",
        "true false",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616u",
        "0xfffffffffffffffff",
    ] {
        let health = assess_on_small_stack(rule.to_owned());
        assert_eq!(health.state, HealthState::Failing, "{rule:?}: {}", health.message);
    }
}
