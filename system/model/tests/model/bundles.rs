//! Any text is parsed or rejected in bounded time and memory, with the same result each time.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;
use sindri_model::yaml::{DEPTH_MAX, parse_documents, to_text};
use sindri_model::{Bundle, BundleError};

/// Far longer than parsing takes, even on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Maximum number of values per byte of text: aliases expand to copies.
const VALUES_PER_BYTE_MAX: usize = 200;

const BUNDLES: [&str; 5] = [
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {k: \"v\\n\"}\n",
    "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      containers:\n      - name: c\n        image: i:1\n        args: [\"-a\", '*']\n",
    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: n}\n",
    "a: &anchor\n  b: |\n    text\n    more\n  c: >-\n    folded\nd: *anchor\ne: !tag [1, 0x10, 1e3, .nan, ~]\n",
    "# one\n---\napiVersion: v1\nkind: A\nmetadata: {name: x}\n---\n? k\n: v\n",
];

fn parse(text: &str) -> Result<Bundle, BundleError> {
    #[expect(clippy::disallowed_methods, reason = "the test measures the duration")]
    let start = Instant::now();
    let bundle = Bundle::parse(text);
    assert!(start.elapsed() < TIME_MAX, "{:?} for {} bytes", start.elapsed(), text.len());
    bundle
}

fn count_values(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count_values).sum::<usize>(),
    }
}

/// Checks the properties of every text.
fn check_properties(text: &str) -> Result<(), TestCaseError> {
    let bundle = parse(text);
    prop_assert_eq!(&bundle, &parse(text), "the same text has the same result");
    if let Err(error) = &bundle {
        prop_assert!(!error.errors.is_empty() && !error.to_string().is_empty());
    }
    if let Ok(documents) = parse_documents(text) {
        let count: usize = documents.iter().map(|document| count_values(&document.content)).sum();
        prop_assert!(count <= 1 + VALUES_PER_BYTE_MAX * text.len(), "{} values of {} bytes", count, text.len());
    }
    let Ok(bundle) = bundle else { return Ok(()) };
    // Serializing and parsing an accepted bundle does not change it.
    let written: String = bundle.objects().iter().map(|object| format!("---\n{}", to_text(&object.manifest))).collect();
    let reparsed = parse(&written);
    let reparsed = reparsed.map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
    let manifests = |bundle: &Bundle| bundle.objects().iter().map(|object| object.manifest.clone()).collect::<Vec<_>>();
    prop_assert_eq!(manifests(&reparsed), manifests(&bundle));
    Ok(())
}

/// A mutation of a text.
#[derive(Clone, Debug)]
enum Change {
    Insert(prop::sample::Index, String),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize, usize),
    Splice(prop::sample::Index, usize),
}

fn any_change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        "[-\\[\\]{}:,&*!|>'\"%@`#?~ \\n\\t]{1,4}",
        Just("---\n".to_owned()),
        Just("<<: *anchor\n".to_owned()),
        Just("&anchor ".to_owned()),
        Just("*anchor".to_owned()),
        "\\PC{1,3}",
        any::<char>().prop_map(String::from),
    ];
    prop_oneof![
        (any::<prop::sample::Index>(), piece).prop_map(|(at, text)| Change::Insert(at, text)),
        (any::<prop::sample::Index>(), 1_usize..20).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<prop::sample::Index>(), 1_usize..30, 2_usize..50)
            .prop_map(|(at, len, times)| Change::Repeat(at, len, times)),
        (any::<prop::sample::Index>(), 0..BUNDLES.len()).prop_map(|(at, bundle)| Change::Splice(at, bundle)),
    ]
}

fn apply_change(text: &str, change: &Change) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let position = |index: &prop::sample::Index, chars: &[char]| index.index(chars.len() + 1);
    match change {
        Change::Insert(at, piece) => {
            let at = position(at, &chars);
            chars.splice(at..at, piece.chars());
        }
        Change::Remove(at, length) => {
            let at = position(at, &chars);
            chars.drain(at..(at + length).min(chars.len()));
        }
        Change::Repeat(at, length, times) => {
            let at = position(at, &chars);
            let piece = chars[at..(at + length).min(chars.len())].repeat(*times);
            chars.splice(at..at, piece);
        }
        Change::Splice(at, bundle) => {
            let at = position(at, &chars);
            chars.splice(at..at, BUNDLES[*bundle].chars());
        }
    }
    chars.into_iter().collect()
}

fn proptest_config() -> Config {
    Config { cases: 1_000, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC{0,200}") {
        check_properties(&text)?;
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_properties(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn text_of_yaml_characters_is_parsed_or_rejected(text in "[-a1\\[\\]{}:,&*!|>'\"%#?~ \\n\\t]{0,200}") {
        check_properties(&text)?;
    }

    #[test]
    fn a_mutated_bundle_is_parsed_or_rejected(
        bundle in 0..BUNDLES.len(),
        changes in prop::collection::vec(any_change(), 0..6),
    ) {
        let text = changes.iter().fold(BUNDLES[bundle].to_owned(), |text, change| apply_change(&text, change));
        check_properties(&text)?;
    }
}

#[test]
fn the_unmutated_bundles_are_valid_yaml() {
    for text in BUNDLES {
        assert!(!parse_documents(text).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn oversized_texts_are_rejected_in_time() {
    let wide =
        |items: usize, aliases: usize| format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(items), "*a,".repeat(aliases));
    let nested = format!("{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
    for text in ["[".repeat(50_000), "{a: ".repeat(50_000), "- ".repeat(50_000), nested, wide(200_000, 100)] {
        assert!(parse(&text).is_err(), "{}", &text[..20]);
    }
    for text in ["- a\n".repeat(200_000), format!("a: \"{}\"", "\\n".repeat(200_000)), wide(10, 1_000)] {
        assert!(parse_documents(&text).is_ok(), "{}", &text[..20]);
        let _ = parse(&text);
    }
}
