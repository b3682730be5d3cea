//! Words that a newcomer would stumble over, in comments, strings and names.
//!
//! The replacement is the technical term: "other client" for a stranger, "true if" for whether, "number of" for how many.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

use super::allowed::ALLOWED;
use super::finding::Finding;

const WORDS: [&str; 23] = [
    "nobody",
    "somebody",
    "whoever",
    "anybody",
    "everybody",
    "whatever",
    "whichever",
    "broom",
    "stranger",
    "strangers",
    "dutiful",
    "glance",
    "furniture",
    "furnished",
    "leash",
    "leashed",
    "wish",
    "wishes",
    "wished",
    "hands",
    "patience",
    "succession",
    "afterwards",
];
const PHRASES: [&str; 7] = ["in vain", "it is so", "is told", "are told", "was told", "were told", "be told"];
/// First words of a doc comment that announce a riddle instead of naming the thing.
const RIDDLES: [&str; 10] = ["What", "Whether", "Which", "Who", "Whose", "Whom", "How", "Where", "When", "Whenever"];
/// First words of no sentence in any comment.
const NO_SENTENCE: [&str; 2] = ["What", "Whether"];

/// Findings in one file.
pub fn check(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut offset = 0;
    let mut line = 1;
    // Doc style of the comment in the line before, so that a block of doc comments counts as one.
    let mut block: Option<&str> = None;
    let shebang = ra_ap_rustc_lexer::strip_shebang(text).unwrap_or(0);
    offset += shebang;
    for token in tokenize(&text[shebang..], FrontmatterAllowed::No) {
        let content = &text[offset..offset + token.len as usize];
        offset += token.len as usize;
        let mut report = |line: usize, message: String| {
            findings.push(Finding { place: format!("{file}:{line}"), message });
        };
        match token.kind {
            TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
                let style = comment_style(content);
                let is_first_of_doc = style != "//" && block != Some(style);
                check_comment(file, content, is_first_of_doc, line, &mut report);
                block = Some(style);
            }
            TokenKind::Whitespace => {}
            TokenKind::Literal { kind, .. } if is_text(kind) => {
                for (nth, text) in content.lines().enumerate() {
                    forbidden(file, text)
                        .into_iter()
                        .for_each(|word| report(line + nth, format!("string with {word:?}")));
                }
                block = None;
            }
            TokenKind::Ident => {
                let parts = spaced(content);
                forbidden(file, &parts).into_iter().for_each(|word| report(line, format!("name with {word:?}")));
                block = None;
            }
            _ => block = None,
        }
        line += content.matches('\n').count();
    }
    findings
}

fn check_comment(
    file: &str,
    comment: &str,
    is_first_of_doc: bool,
    line: usize,
    report: &mut impl FnMut(usize, String),
) {
    for (nth, text) in comment.lines().enumerate() {
        let text = text.trim_start_matches(['/', '!', '*', ' ']);
        let line = line + nth;
        forbidden(file, text).into_iter().for_each(|word| report(line, format!("comment with {word:?}")));
        let starts = |part: &str, words: &[&'static str]| {
            let first = part.split(|character: char| !character.is_alphabetic()).next().unwrap_or_default();
            words.iter().copied().find(|word| *word == first)
        };
        if let Some(word) = starts(text, &RIDDLES).filter(|_| is_first_of_doc && nth == 0) {
            report(line, format!("doc comment that begins with {word:?}: say what the item is"));
        } else if let Some(word) = text.split(". ").find_map(|sentence| starts(sentence, &NO_SENTENCE)) {
            report(line, format!("sentence that begins with {word:?}"));
        }
    }
}

/// Findings in a page or another text that is no source.
pub fn check_prose(file: &str, text: &str) -> Vec<Finding> {
    let found = |(index, line)| forbidden(file, line).into_iter().map(move |word| (index + 1, word));
    let to_finding = |(line, word)| Finding { place: format!("{file}:{line}"), message: format!("text with {word:?}") };
    text.lines().enumerate().flat_map(found).map(to_finding).collect()
}

fn comment_style(comment: &str) -> &'static str {
    let styles = ["///", "//!", "/**", "/*!"];
    styles.into_iter().find(|style| comment.starts_with(style)).unwrap_or("//")
}

fn is_text(kind: LiteralKind) -> bool {
    matches!(kind, LiteralKind::Str { .. } | LiteralKind::RawStr { .. })
}

/// Forbidden words and phrases that are not allowed in this file.
fn forbidden(file: &str, text: &str) -> Vec<&'static str> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|character: char| !character.is_alphabetic()).collect();
    let found = WORDS.into_iter().filter(|word| words.contains(word));
    let phrases = PHRASES.into_iter().filter(|phrase| has_phrase(&words, phrase));
    let is_allowed =
        |word: &str| ALLOWED.iter().any(|(place, allowed, _)| *place == file && ["*", word].contains(allowed));
    found.chain(phrases).filter(|word| !is_allowed(word)).collect()
}

fn has_phrase(words: &[&str], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words.windows(phrase.len()).any(|window| window == phrase)
}

/// A name as separate words: `ask_nobody` and `AskNobody` both become `ask nobody`.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character == '_' || character.is_uppercase() {
            words.push(' ');
        }
        words.extend(character.to_lowercase().filter(|character| *character != '_'));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        check("a.rs", text).into_iter().map(|finding| (finding.place, finding.message)).collect()
    }

    #[test]
    fn a_word_is_found_in_comments_strings_and_names_with_its_line() {
        let text = "// Fine.\n// For nobody.\nlet text = \"whoever\";\nfn broom() {}\nstruct AskNobody;\n";
        let places: Vec<String> = found(text).into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["a.rs:2", "a.rs:3", "a.rs:4", "a.rs:5"]);
    }

    #[test]
    fn a_part_of_a_word_is_fine() {
        assert_eq!(found("// Wishbone; glanced.\nlet unleashed = \"sweeping\";\n"), []);
    }

    #[test]
    fn a_phrase_is_found_across_spaces_only() {
        assert_eq!(found("// It is told.\n").len(), 1);
        assert_eq!(found("// It is untold.\n"), []);
    }

    #[test]
    fn a_doc_comment_names_the_thing_first() {
        assert_eq!(found("/// What is kept.\nstruct A;\n").len(), 1);
        assert_eq!(found("/// Objects by key.\n/// When two are equal, the first wins.\nstruct A;\n"), []);
        assert_eq!(found("//! How it works.\n").len(), 1);
    }

    #[test]
    fn no_sentence_begins_with_a_question_word() {
        assert_eq!(found("// It is fast. What is slow is elsewhere.\n").len(), 1);
        assert_eq!(found("// It is fast. When it is slow, wait.\n"), []);
    }

    #[test]
    fn a_comment_begins_with_no_question_word() {
        assert_eq!(found("// What is slow is elsewhere.\n").len(), 1);
    }

    #[test]
    fn a_word_is_found_in_a_page_with_its_line() {
        let findings = check_prose("a.md", "# Fine\n\nFor nobody.\n");
        assert_eq!(findings, [Finding { place: "a.md:3".into(), message: "text with \"nobody\"".into() }]);
    }

    #[test]
    fn every_exception_is_still_needed() {
        for (file, word, _) in ALLOWED.iter().filter(|(_, word, _)| *word != "*") {
            let text = std::fs::read_to_string(crate::process::root().join(file)).unwrap().to_lowercase();
            assert!(text.contains(word), "{file} has no {word:?} any more");
        }
    }
}
