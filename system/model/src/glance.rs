//! What can be told of a YAML text without parsing it: that it holds a document and that no limit of the parser can be
//! exceeded. Most texts are like that, and parsing is most of what it costs to accept one.

use crate::yaml::{DEPTH_MAX, DOCUMENTS_MAX, TEXT_BYTES_MAX, UNCLOSED_MAX, is_separator, unclosed};

/// Whether a glance shows that the text holds a document and is within every limit. If not, nothing is known.
pub(crate) fn is_harmless(text: &str) -> bool {
    // Aliases unfold what an anchor names, and tabs indent in ways that are hard to foresee.
    let has = |sign: u8| text.bytes().any(|byte| byte == sign);
    let may_unfold = has(b'*') && has(b'&');
    text.len() <= TEXT_BYTES_MAX
        && !may_unfold
        && !has(b'\t')
        && text.lines().filter(|line| line.starts_with("---")).count() < DOCUMENTS_MAX
        && unclosed(text) <= UNCLOSED_MAX
        && text.lines().any(has_a_key)
        && depth_at_most(text) <= DEPTH_MAX
}

/// A document with a key is something, or is broken; it is not nothing.
fn has_a_key(line: &str) -> bool {
    // What follows a number sign may be a comment.
    line.split('#').next().is_some_and(|before| before.contains(':'))
}

/// More levels than any document of the text has.
///
/// At one column there is at most a mapping and a sequence in it, and whatever else a line opens has a sign of its own.
fn depth_at_most(text: &str) -> usize {
    let (mut deepest, mut deepest_flow, mut flow) = (0, 0, 0);
    for line in text.lines() {
        if is_separator(line) {
            flow = 0;
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (mut signs, mut brackets) = (0, 0);
        for byte in line.bytes() {
            match byte {
                b'-' | b'?' | b':' => signs += 1,
                b'[' | b'{' => brackets += 1,
                _ => {}
            }
        }
        deepest = deepest.max(2 * (indent + 1) + signs);
        // What stands in brackets may go on over many lines of its document, with a pair in each of them.
        flow += 2 * brackets;
        deepest_flow = deepest_flow.max(flow);
    }
    deepest + deepest_flow
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::yaml::parse_documents;

    #[test]
    fn an_ordinary_manifest_is_seen_to_be_harmless() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      \
                    containers:\n      - name: web\n        args: [a, b]\n        env:\n        - name: A\n          \
                    valueFrom:\n            secretKeyRef: {name: a, key: b}\n  schedule: '*/5 * * * *'\n";
        assert!(is_harmless(text));
        assert!(is_harmless(&format!("{text}---\n").repeat(100)), "what one document opens is not the next one's");
    }

    #[test]
    fn what_has_to_be_parsed_is_not() {
        let deep = format!("a: {}1{}", "[".repeat(70), "]".repeat(70));
        let compact = format!("{}a: b", "- ".repeat(70));
        let nested: String = (0..70).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        for text in ["", "# a: b\n", "null", "a: &x 1\nb: *x\n", "\ta: b", &deep, &compact, &nested] {
            assert!(!is_harmless(text), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// Whatever is taken for harmless is refused by no limit, and is not empty.
        #[test]
        fn a_glance_promises_nothing_that_parsing_breaks(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "a: ", "- ", "? ", "b", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ",", "---\n", "# c", "|\n", "'", "\"",
                    ": ", ":\n", " ", "~", "null", "!!x ", "&n ", "*n ", ">-\n   ", "\n          ", "é", "\r\n", "%T\n", "...\n",
                ]),
                0..120,
            )
        ) {
            let text: String = pieces.concat();
            if is_harmless(&text) {
                match parse_documents(&text) {
                    Ok(documents) => prop_assert!(!documents.is_empty(), "{text:?} is empty"),
                    Err(errors) => {
                        for error in errors {
                            prop_assert!(!error.is_limit, "{text:?}: {error}");
                        }
                    }
                }
            }
        }
    }
}
