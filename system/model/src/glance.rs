//! What can be told of a YAML text without parsing it: that it holds a document and that no limit of the parser can be
//! exceeded. Most texts are like that, and parsing is most of what it costs to accept one.

use crate::yaml::{DEPTH_MAX, DOCUMENTS_MAX, TEXT_BYTES_MAX, UNCLOSED_MAX, is_separator, unclosed};

/// Whether a glance shows that the text holds a document and is within every limit. If not, nothing is known.
pub(crate) fn is_harmless(text: &str) -> bool {
    if text.len() > TEXT_BYTES_MAX {
        return false;
    }
    let seen = Seen::of(text);
    // Aliases unfold what an anchor names, and tabs indent in ways that are hard to foresee.
    let is_plain = !(seen.has_tab || seen.has_alias && seen.has_anchor);
    is_plain
        && seen.separators < DOCUMENTS_MAX
        && seen.has_key
        && seen.deepest + seen.deepest_flow <= DEPTH_MAX
        && unclosed(text) <= UNCLOSED_MAX
}

/// What is seen in one pass.
#[derive(Default)]
struct Seen {
    has_alias: bool,
    has_anchor: bool,
    has_tab: bool,
    /// A document with a key is something, or is broken; it is not nothing.
    has_key: bool,
    separators: usize,
    /// As many levels as any line can open, those in brackets aside: at one column there is at most a mapping and a sequence in
    /// it, and whatever else a line opens has a sign of its own.
    deepest: usize,
    /// As many levels as the brackets of any document can open: what stands in them may go on over many lines, with a pair in
    /// each of them.
    deepest_flow: usize,
    flow: usize,
}

/// What is seen of a line.
#[derive(Default)]
struct Line {
    begin: usize,
    indent: usize,
    signs: usize,
    brackets: usize,
    /// What follows a number sign may be a comment.
    may_be_comment: bool,
}

impl Seen {
    fn of(text: &str) -> Self {
        let (mut seen, mut line) = (Self::default(), Line::default());
        for (place, byte) in text.bytes().enumerate() {
            match byte {
                b'\n' => {
                    seen.end(&line, &text[line.begin..place]);
                    line = Line { begin: place + 1, ..Line::default() };
                }
                b' ' => line.indent += usize::from(line.begin + line.indent == place),
                b':' => {
                    line.signs += 1;
                    seen.has_key |= !line.may_be_comment;
                }
                b'-' | b'?' => line.signs += 1,
                b'[' | b'{' => line.brackets += 1,
                b'#' => line.may_be_comment = true,
                b'*' => seen.has_alias = true,
                b'&' => seen.has_anchor = true,
                b'\t' => seen.has_tab = true,
                _ => {}
            }
        }
        seen.end(&line, &text[line.begin..]);
        seen
    }

    fn end(&mut self, line: &Line, content: &str) {
        self.separators += usize::from(content.starts_with("---"));
        if is_separator(content) {
            self.flow = 0;
        }
        self.deepest = self.deepest.max(2 * (line.indent + 1) + line.signs);
        self.flow += 2 * line.brackets;
        self.deepest_flow = self.deepest_flow.max(self.flow);
    }
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
