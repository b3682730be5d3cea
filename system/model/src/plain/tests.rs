//! Whatever is read here is what the library reads; and what is not read here.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::LEVELS_MAX;
use crate::strict::Strict;

/// What is written has to be JSON.
fn read(text: &str) -> Option<Value> {
    super::read(text).map(|json| serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}")))
}

fn by_the_library(text: &str) -> Option<Value> {
    serde_yaml::from_str(text).ok().map(|Strict(value)| value)
}

#[test]
fn what_manifests_consist_of_is_read_here() {
    let text = r#"# A comment.

apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {}
spec:
  replicas: 2
  paused: false
  nothing:
  empty: []
  template:
    spec:
      containers:
      - name: web
        image: registry.test:5000/web:1.0
        args:
        # Another.
        - --port=8080
        - -c
        - 256Mi
        - 10.0.0.1
        - "a: b # c"
        - '1'
  script: |
    one
      two

    three # four

  end: |-
    five
last: yes
"#;
    assert_eq!(read(text), by_the_library(text));
    assert_eq!(read(text).unwrap()["spec"]["script"], "one\n  two\n\nthree # four\n");
    assert_eq!(read(text).unwrap()["spec"]["nothing"], Value::Null);
}

#[test]
fn everything_else_is_left_to_the_library() {
    for line in [
        "a: ~",
        "a: .inf",
        "a: -1",
        "a: 1.5",
        "a: 1e3",
        "a: 0x1f",
        "a: 017",
        "a: 1_000",
        "a: +1",
        "a: [1",
        "a: [1] ]",
        "a: [1,]",
        "a: [,]",
        "a: [1] # b",
        "a: {b}",
        "a: {b:1}",
        "a: {b: 1, b: 2}",
        "a: [b: c]",
        "a: [b:c]",
        "a: {\"b\": 1}",
        "a: ['b''c']",
        "a: [b\n  ]",
        "a: {b: }",
        "a: [#b]",
        "a: {b: -}",
        "a: {b: 1",
        "a: &b c",
        "a: *b",
        "a: !t c",
        "a: >\n  b",
        "a: |+\n  b",
        "a: |2\n  b",
        "a: b # c",
        "a: b: c",
        "a: b\n  c",
        "a: \"b\\n\"",
        "a: 'b''c'",
        "a: \"b",
        "a: 'b",
        "a: b:",
        "a: - b",
        "a:\tb",
        "a: é",
        "a: b ",
        "a: |\n\n  b",
        "a: |\n  b\n    \n",
        "a: |\nb: 1",
        "- a",
        "a",
        "? a",
        "null: a",
        "true: a",
        "1: a",
        "a: 1\na: 2",
        "\"a\": b",
        "a :b",
        " a: b",
        "a: -inf",
        "a: -.inf",
        "a:\n  -\n    b",
        "a:\n  - - b",
        "a:\n  b\n",
        "a:\n    b: 1\n  c: 1",
        "a:\n  - b\n    c",
        "--- a",
        "...",
        "%YAML 1.2",
        "<<: a",
        "a: `b`",
        "a: @b",
        "a: %b",
        "a: nan",
        "a: Infinity",
    ] {
        assert_eq!(read(&format!("{line}\n")), None, "{line}");
    }
    assert_eq!(read("a: b"), None, "without an end of the line");
    assert_eq!(read(&format!("{}: b\n", "a".repeat(2_000))), None);
    let nested: String = (0..LEVELS_MAX + 2).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(read(&nested), None);
}

#[test]
fn what_is_written_as_a_list_of_lists_or_of_texts_is_read_where_it_can_be() {
    for (text, value) in [
        ("a:\n- b: 1\n  c:\n  - d\n- b: 2\ne: f\n", json!({"a": [{"b": 1, "c": ["d"]}, {"b": 2}], "e": "f"})),
        ("a:\n  - b:\n  - c: d\n", json!({"a": [{"b": null}, {"c": "d"}]})),
        ("a:\n  -   b: 1\n      c: 2\n", json!({"a": [{"b": 1, "c": 2}]})),
        ("a:\n- |\n  b\n- c\n", json!({"a": ["b\n", "c"]})),
        (
            "a: {b: [c d, 1, \"e, f\"], g: {}}\nh:\n- {i: true}\n",
            json!({"a": {"b": ["c d", 1, "e, f"], "g": {}}, "h": [{"i": true}]}),
        ),
    ] {
        assert_eq!((read(text), by_the_library(text)), (Some(value.clone()), Some(value)), "{text}");
    }
}

#[test]
fn the_bundles_of_the_fixtures_are_read_the_same() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles")).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect::<Vec<_>>();
    let documents = texts.iter().flat_map(|text| text.split("---\n"));
    let read_here = documents.filter_map(|text| Some((text, read(text)?))).collect::<Vec<_>>();
    assert!(!read_here.is_empty());
    for (text, value) in read_here {
        assert_eq!(Some(value), by_the_library(text), "{text}");
    }
}

/// Values as manifests have them, and some that are read otherwise than they look.
fn word() -> impl Strategy<Value = String> {
    let telling = [
        "",
        "a",
        "web",
        "Null",
        "TRUE",
        "yes",
        "off",
        "0",
        "7",
        "08",
        "80",
        "-1",
        "1.5",
        "1e3",
        "1e",
        "0x1f",
        "0o7",
        "0b1",
        "10.0.0.1",
        "100m",
        "1Gi",
        "1_000",
        "2026-01-01",
        "-inf",
        "--inf",
        "-x",
        "--a=b",
        "a:b",
        "a: b",
        "a #b",
        "a#b",
        "#a",
        "\"q\"",
        "'q'",
        "\"q",
        "[]",
        "{}",
        "[a]",
        "|",
        "|-",
        ">",
        "-",
        "- a",
        "/x",
        "$(A)",
        "(a)",
        "a,b",
        "*a",
        "&a",
        "!a",
        "@a",
        "%a",
        "a'b",
        "a\"b",
        "12e",
        "e1",
        "+1",
        "1+1",
        "1:30",
        "0.",
        "1.",
        "..",
        "1..2",
        "f",
        "0xg",
        "NaN",
        ".nan",
        "infinity",
        "~",
        "?",
        "? a",
        ":",
        "a:",
        "---",
        "...",
    ];
    prop_oneof![3 => prop::sample::select(telling.to_vec()).prop_map(str::to_owned), 1 => "[ -~]{0,6}"]
}

/// What decides about one line: how far in it stands, what begins it, its key and its value.
fn line() -> impl Strategy<Value = (usize, &'static str, Option<&'static str>, Option<String>)> {
    let dash = prop::sample::select(vec!["", "", "", "", "- ", "- ", "-  ", "-"]);
    let odd = prop::sample::select(vec!["a.b/c-d:", ".x:", ".1:", "..:", "null:", "1:", "a", "a: ", "\"a\":"]);
    let key = prop_oneof![4 => Just(None), 1 => odd.prop_map(Some)];
    let value = prop_oneof![1 => Just(None), 2 => word().prop_map(Some), 2 => Just(Some("x".to_owned()))];
    (0_usize..40, dash, key, value)
}

/// Lines that mostly make a document: what has no value is mostly followed by something further in.
fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 1..8).prop_map(|lines| {
        let (mut text, mut indents, mut is_open) = (String::new(), vec![0_usize], false);
        for (number, (choice, dash, key, value)) in lines.into_iter().enumerate() {
            let last = *indents.last().unwrap();
            let indent = match choice {
                0 => last + 1,
                1 => last.saturating_sub(1),
                _ if is_open => last + choice % 3,
                _ => indents[choice % indents.len()],
            };
            indents.retain(|known| *known < indent);
            indents.extend([indent, indent + dash.len()]);
            is_open = value.as_deref().is_none_or(|value| value.starts_with('|'));
            let key = key.map_or_else(|| format!("k{number}:"), str::to_owned);
            // Items are often no fields.
            let key = if dash.is_empty() || choice % 2 == 0 { key } else { String::new() };
            let value = value.unwrap_or_default();
            // Lines that say nothing, which may be in a text that keeps its lines.
            text.push_str(match choice {
                3 => "\n",
                4 => "   \n",
                5 => "# a\n",
                6 => "  # a\n",
                _ => "",
            });
            let gap = if key.is_empty() || value.is_empty() { "" } else { " " };
            text.push_str(&format!("{}{dash}{key}{gap}{value}\n", " ".repeat(indent)));
        }
        text
    })
}

/// A value that has every shape.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        word().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        Just(Value::Null),
        "[a-z:# \"\\\\\n]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z./0-9]{1,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_here_is_what_the_library_reads(text in document()) {
        if let Some(value) = read(&text) {
            prop_assert_eq!(Some(value), by_the_library(&text), "{}", text);
        }
    }

    #[test]
    fn what_stands_in_brackets_is_what_the_library_reads(text in "[\\[{][a-b1 :,'\"\\[\\]{}.-]{0,14}[\\]}]") {
        let text = format!("a: {text}\n");
        if let Some(value) = read(&text) {
            prop_assert_eq!(Some(value), by_the_library(&text), "{}", text);
        }
    }

    #[test]
    fn what_the_library_writes_and_somebody_changes_is_read_the_same(
        value in value(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b" \n-:#|a1\"\\'[]{},".to_vec()), 0..3), 0..3),
    ) {
        let mut text = serde_yaml::to_string(&json!({"a": value})).unwrap().into_bytes();
        for (place, byte, change) in changes {
            let place = place.index(text.len());
            match change {
                0 => text.insert(place, byte),
                1 => text[place] = byte,
                _ => drop(text.remove(place)),
            }
        }
        if let Some((text, value)) = String::from_utf8(text).ok().and_then(|text| Some((text.clone(), read(&text)?))) {
            prop_assert_eq!(Some(value), by_the_library(&text), "{}", text);
        }
    }
}
