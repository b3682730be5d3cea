//! Random input: no panic, a result within the budget, and the same result twice.

use proptest::prelude::*;
use serde_json::Value;
use sindri_cel::{Pattern, Quantity, time};

use crate::evaluate;
use crate::fuzzed::input::TOKENS;

fn part() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&TOKENS[..])
}

/// Rules with closed calls, which are valid far more often than random tokens.
fn rule() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(
        &[
            "self",
            "self.text",
            "self.list",
            "self.map",
            "self.size",
            "1",
            "-1",
            "2u",
            "0.5",
            "'a%s'",
            "[1, 2]",
            "x",
            "null",
            "b'a'",
        ][..],
    );
    leaf.prop_map(ToOwned::to_owned).prop_recursive(5, 32, 3, |inner| {
        let binary = prop::sample::select(&["+", "-", "*", "/", "%", "==", "<", ">=", "&&", "||", " in "][..]);
        let function = prop::sample::select(
            &[
                "size",
                "int",
                "string",
                "double",
                "duration",
                "timestamp",
                "type",
                "dyn",
                "quantity",
                "ip",
                "url",
                "cidr",
            ][..],
        );
        let method = prop::sample::select(
            &[
                "split",
                "replace",
                "substring",
                "charAt",
                "indexOf",
                "lastIndexOf",
                "matches",
                "find",
                "findAll",
                "format",
                "join",
                "slice",
                "flatten",
                "contains",
                "orValue",
                "getHours",
                "add",
                "sub",
                "min",
                "sort",
                "distinct",
            ][..],
        );
        let around = prop::sample::select(&["all", "exists", "exists_one", "filter", "map"][..]);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(left, sign, right)| format!("({left} {sign} {right})")),
            (function, inner.clone()).prop_map(|(name, of)| format!("{name}({of})")),
            (inner.clone(), method, prop::collection::vec(inner.clone(), 0..3))
                .prop_map(|(of, name, arguments)| format!("{of}.{name}({})", arguments.join(", "))),
            (inner.clone(), around, inner.clone()).prop_map(|(of, name, test)| format!("{of}.{name}(x, {test})")),
            (inner.clone(), inner.clone()).prop_map(|(of, at)| format!("{of}[{at}]")),
            (inner.clone(), inner.clone(), inner).prop_map(|(one, two, three)| format!("({one} ? {two} : {three})")),
        ]
    })
}

/// Found by `any_text_is_a_pattern_or_none`: the end of the name of a class was searched from its second character on.
#[test]
fn a_class_that_begins_like_a_named_one_is_no_panic() {
    for pattern in ["[[:]", "[[:]]", "[[:", "[[::]]", "[[:^]", "[a[:]b]"] {
        let _ = Pattern::new(pattern);
    }
    assert!(Pattern::new("[[:]").is_ok_and(|pattern| pattern.is_in(":") && pattern.is_in("[") && !pattern.is_in("a")));
    assert!(Pattern::new("[[:digit:]]").is_ok_and(|pattern| pattern.is_in("7") && !pattern.is_in(":")));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_rule_is_evaluated_deterministically(rule in rule()) {
        prop_assert_eq!(evaluate(&rule), evaluate(&rule));
    }

    #[test]
    fn any_tokens_are_handled(parts in prop::collection::vec(part(), 0..30)) {
        evaluate(&parts.concat());
    }

    #[test]
    fn any_text_is_handled(rule in any::<String>()) {
        evaluate(&rule);
    }

    #[test]
    fn any_text_is_a_pattern_or_none(text in any::<String>(), odd in "[\\\\\\[\\](){}|*+?.^$a-c0-9:<>P-]{0,12}") {
        for pattern in [&text, &odd] {
            if let Ok(pattern) = Pattern::new(pattern) {
                pattern.is_in("abc");
            }
        }
    }

    #[test]
    fn any_text_is_a_time_or_none(text in any::<String>(), odd in "[-+0-9.TZ:hmsnuµd ]{0,24}") {
        for text in [&text, &odd] {
            let _ = (time::timestamp(text), time::date(text), time::duration(text), time::schema_duration(text));
            let _ = time::schema_timestamp(text);
        }
    }

    #[test]
    fn any_text_is_a_quantity_or_none(text in any::<String>(), odd in "[-+0-9.eEkKMGTPmnui]{0,12}") {
        for text in [&text, &odd] {
            if let Some(amount) = Quantity::parse(text) {
                let written = amount.canonical();
                prop_assert_eq!(Quantity::parse(&written), Some(amount), "{} {}", text, written);
                let _ = (amount.plus(amount), amount.minus(amount), amount.whole(), amount.approximate());
            }
        }
    }

    #[test]
    fn any_object_is_handled(value in any::<i64>()) {
        prop_assert_eq!(sindri_cel::Cel::from_json(&Value::from(value)).type_name(), "int");
    }
}
