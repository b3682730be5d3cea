//! YAML parsing with limits. No other file passes text to the YAML library.
//!
//! A text is split into documents before it is parsed (each line that starts with `---` is a separator), so that each
//! error names its document and its line in the whole text, and one invalid document does not hide another.

use std::iter;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::Value;
use thiserror::Error;

use crate::alias_budget::AliasBudget;
use crate::strict::StrictValue;

/// Maximum size of a text.
pub const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of documents in one text.
pub const DOCUMENTS_MAX: usize = 10_000;
/// Maximum nesting of one document: twice that of the deepest CRDs.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of unclosed brackets.
pub const UNCLOSED_MAX: usize = 2_000;
/// Maximum work of the library, in steps: at each token it visits every bracket that is not closed. A step takes about
/// two nanoseconds.
pub const STEPS_MAX: usize = 100_000_000;
/// Maximum number of values in one text, as estimated before parsing. The library needs about 250 bytes for each.
pub const VALUES_MAX: usize = 500_000;
/// Maximum number of entries that begin on one line, each inside the one before it.
pub const ENTRIES_PER_LINE_MAX: usize = 2 * DEPTH_MAX;
/// Maximum number of `%TAG` directives, which the library compares with each other and with each tag.
pub const TAG_DIRECTIVES_MAX: usize = 64;
/// Maximum memory of one document with all aliases expanded, as estimated before parsing.
pub const EXPANDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Prefixes of the errors for the limits of the library itself: on depth and on alias expansions.
const LIBRARY_LIMITS: [&str; 2] = ["recursion limit exceeded", "repetition limit exceeded"];

/// One document of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Number of the document, counted from 1, empty documents included.
    pub index: usize,
    /// Line of the text on which the document starts, counted from 1.
    pub line: usize,
    /// Content of the document.
    pub content: Value,
}

/// A document that is not valid YAML, or that JSON cannot express.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("document {document}, line {line}, column {column}: {reason}")]
pub struct YamlError {
    /// Number of the document, counted from 1.
    pub document: usize,
    /// Line in the whole text, counted from 1.
    pub line: usize,
    /// Column in that line, counted from 1.
    pub column: usize,
    /// Message of the parser.
    pub reason: String,
    /// True if the document exceeds a limit.
    pub is_limit: bool,
}

/// Parses every document and skips empty ones. Fails with the errors of all invalid documents.
pub fn parse_documents(text: &str) -> Result<Vec<Document>, Vec<YamlError>> {
    if text.len() > TEXT_BYTES_MAX {
        let reason = format!("the text has {} bytes, more than the limit of {TEXT_BYTES_MAX}", text.len());
        return Err(vec![YamlError { document: 1, line: 1, column: 1, reason, is_limit: true }]);
    }
    if let Err(reason) = check_work(text) {
        return Err(vec![YamlError { document: 1, line: 1, column: 1, reason, is_limit: true }]);
    }
    let chunks = split_documents(text.strip_prefix('\u{feff}').unwrap_or(text));
    if chunks.len() > DOCUMENTS_MAX {
        let reason = format!("the text has more than {DOCUMENTS_MAX} documents");
        let line = chunks[DOCUMENTS_MAX].line;
        return Err(vec![YamlError { document: DOCUMENTS_MAX + 1, line, column: 1, reason, is_limit: true }]);
    }
    let (mut documents, mut errors) = (Vec::with_capacity(chunks.len()), Vec::new());
    for chunk in chunks {
        match parse_chunk(&chunk) {
            Ok(None) => {}
            Ok(Some(content)) => documents.push(Document { index: chunk.index, line: chunk.line, content }),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(documents) } else { Err(errors) }
}

/// Deserializes one document into a type, for configuration and scenario files. An enum variant is a mapping with one
/// key.
pub fn parse_into<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let deserializer = serde_yaml::Deserializer::from_str(text);
    serde_yaml::with::singleton_map_recursive::deserialize(deserializer)
        .map_err(|error| to_yaml_error(&error, &Chunk { index: 1, line: 1, column: 1, text }))
}

/// Serializes a value as YAML.
pub fn to_text(value: &Value) -> String {
    serde_yaml::to_string(value).expect("every JSON value can be written as YAML")
}

/// Text of one document.
struct Chunk<'a> {
    index: usize,
    /// Line and column of its first character, counted from 1.
    line: usize,
    column: usize,
    text: &'a str,
}

fn split_documents(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut start_line, mut column) = (0, 1, 1);
    for separator in find_separators(text) {
        // Text on the separator's own line belongs to the document after it.
        let chunk = &text[start..separator];
        chunks.push(Chunk { index: 0, line: start_line, column, text: chunk });
        (start, start_line) = (separator + 3, start_line + chunk.matches('\n').count());
        column = 4;
    }
    chunks.push(Chunk { index: 0, line: start_line, column, text: &text[start..] });
    // A leading separator starts the first document.
    if chunks.len() > 1 && is_blank(chunks[0].text) {
        chunks.remove(0);
    }
    chunks.iter_mut().zip(1..).for_each(|(chunk, index)| chunk.index = index);
    chunks
}

/// Returns the offsets of the lines that separate documents.
fn find_separators(text: &str) -> impl Iterator<Item = usize> {
    let inner = text.match_indices("\n---").map(|(newline, _)| newline + 1);
    iter::once(0).chain(inner).filter(|offset| is_separator(&text[*offset..]))
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

/// Parses one document; `None` if it is empty.
fn parse_chunk(chunk: &Chunk<'_>) -> Result<Option<Value>, YamlError> {
    if is_blank(chunk.text) {
        return Ok(None);
    }
    let fail = |reason: String, is_limit| {
        let (document, line, column) = (chunk.index, chunk.line, chunk.column);
        YamlError { document, line, column, reason, is_limit }
    };
    if expands_too_far(chunk.text) {
        return Err(fail(format!("its aliases expand to more than {EXPANDED_BYTES_MAX} bytes"), true));
    }
    let StrictValue(value) = serde_yaml::from_str(chunk.text).map_err(|error| to_yaml_error(&error, chunk))?;
    if measure_depth(&value) > DEPTH_MAX {
        return Err(fail(format!("the document has more than {DEPTH_MAX} levels"), true));
    }
    Ok((!value.is_null()).then_some(value))
}

/// Checks an upper bound of the work that the library needs for a text. Brackets in quotes and comments count too: the
/// check only protects the library.
fn check_work(text: &str) -> Result<(), String> {
    let at_line_start = |offset: usize| offset == 0 || matches!(text.as_bytes()[offset - 1], b'\n' | b'\r');
    if text.match_indices("%TAG").filter(|(offset, _)| at_line_start(*offset)).count() > TAG_DIRECTIVES_MAX {
        return Err(format!("the text has more than {TAG_DIRECTIVES_MAX} %TAG directives"));
    }
    let (mut open, mut steps) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            b',' | b':' | b'?' | b'-' | b'"' | b'\'' | b'\n' | b'\r' | b'&' | b'*' | b'!' | b' ' => {}
            // Only the characters above end one token or begin another.
            _ => continue,
        }
        steps = steps.saturating_add(open);
        if open > UNCLOSED_MAX {
            return Err(format!("more than {UNCLOSED_MAX} brackets and braces are not closed"));
        }
    }
    if steps > STEPS_MAX {
        return Err("too many brackets and braces are not closed".to_owned());
    }
    check_values(text)
}

/// Checks an upper bound of the memory that the library needs for a text: it keeps all values of a document.
fn check_values(text: &str) -> Result<(), String> {
    let (mut values, mut nested, mut is_indentation) = (0_usize, 0_usize, true);
    let next_bytes = text.bytes().skip(1).map(Some).chain(iter::once(None));
    for (byte, next) in text.bytes().zip(next_bytes) {
        let begins_entry =
            matches!(byte, b'-' | b'?' | b':') && matches!(next, None | Some(b' ' | b'\t' | b'\n' | b'\r'));
        if begins_entry || matches!(byte, b',' | b'[' | b'{') {
            values += 1;
        }
        match byte {
            b'\n' | b'\r' => (nested, is_indentation) = (0, true),
            b' ' | b'\t' => {}
            _ if begins_entry && is_indentation => nested += 1,
            _ => is_indentation = false,
        }
        if nested > ENTRIES_PER_LINE_MAX {
            return Err(format!("more than {ENTRIES_PER_LINE_MAX} entries begin on one line"));
        }
    }
    if values > VALUES_MAX { Err(format!("the text has more than {VALUES_MAX} values")) } else { Ok(()) }
}

/// Returns true if the aliases of a document expand to too much memory. Other errors are left to the parser.
fn expands_too_far(text: &str) -> bool {
    let mut budget = AliasBudget::new(EXPANDED_BYTES_MAX);
    if text.contains('&') && text.contains('*') {
        let _ = (&mut budget).deserialize(serde_yaml::Deserializer::from_str(text));
    }
    budget.is_exceeded
}

/// Returns the nesting depth of collections. The recursion is bounded by the library's own limit.
fn measure_depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(values) => 1 + values.iter().map(measure_depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(measure_depth).max().unwrap_or(0),
    }
}

fn to_yaml_error(error: &serde_yaml::Error, chunk: &Chunk<'_>) -> YamlError {
    let (line, column) = error.location().map_or((chunk.line, chunk.column), |location| match location.line() {
        1 => (chunk.line, chunk.column + location.column() - 1),
        line => (chunk.line + line - 1, location.column()),
    });
    let message = error.to_string();
    // The library appends its own position, which is wrong for every document except the first.
    let reason = message.split(" at line ").next().unwrap_or(&message).to_owned();
    let is_limit = LIBRARY_LIMITS.iter().any(|prefix| reason.starts_with(prefix));
    YamlError { document: chunk.index, line, column, reason, is_limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_crlf_bom_and_empty_documents_are_accepted() {
        let text = "\u{feff}# first\r\n---\r\na: 1\r\n---\r\n# nothing\r\n---\r\n--- {b: 2}\r\n";
        let documents = parse_documents(text).unwrap();
        let values: Vec<_> = documents.into_iter().map(|document| document.content).collect();
        assert_eq!(values, [json!({"a": 1}), json!({"b": 2})]);
    }

    #[test]
    fn every_invalid_document_is_reported_with_its_line() {
        let text = "a: 1\n---\nb: [1,\n---\nc: 3\n---\nd: {x: 1\n";
        let errors = parse_documents(text).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.document).collect::<Vec<_>>(), [2, 4]);
        assert!(errors[0].line >= 3, "{errors:?}");
    }

    #[test]
    fn an_error_has_its_line_and_column_in_the_whole_text() {
        for (text, line, column) in [
            ("a: b: c\n", 1, 5),
            ("a: 1\n---\n\tb: 1\n", 3, 1),
            ("---\nx: 1\n--- {a: 1, b: ]\n", 3, 15),
            ("a: 1\n---\na: 1\na: 2\n", 3, 1),
        ] {
            let error = parse_documents(text).unwrap_err().remove(0);
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_limit_is_reported_beside_other_errors() {
        let deep = format!("a: [1\n---\n{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
        let is_limit: Vec<bool> = parse_documents(&deep).unwrap_err().iter().map(|error| error.is_limit).collect();
        assert_eq!(is_limit, [false, true]);
    }

    #[test]
    fn a_duplicate_key_is_an_error() {
        assert!(parse_documents("a: 1\na: 2\n").unwrap_err()[0].reason.contains("duplicate"));
    }

    #[test]
    fn an_alias_bomb_is_rejected() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
        }
        assert!(parse_documents(&text).unwrap_err()[0].is_limit);
    }

    #[test]
    fn aliases_are_limited_by_their_expanded_size() {
        let wide = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(100_000), "*a,".repeat(100));
        assert!(parse_documents(&wide).unwrap_err()[0].is_limit);
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1_000_000), "*a,".repeat(100));
        assert!(parse_documents(&long).unwrap_err()[0].is_limit);
        let modest = format!("a: &a {{k: !t [1, 2.5, null, true, -1]}}\nb: [{}]\n", "*a,".repeat(100));
        assert_eq!(parse_documents(&modest).unwrap()[0].content["b"].as_array().unwrap().len(), 100);
    }

    #[test]
    fn deep_nesting_exceeds_a_limit() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_documents(&nested(DEPTH_MAX)).is_ok());
        for levels in [DEPTH_MAX + 1, 100, 127, 128, 129, 10_000] {
            assert!(parse_documents(&nested(levels)).unwrap_err()[0].is_limit, "{levels}");
        }
    }

    #[test]
    fn a_text_that_the_library_reads_in_quadratic_time_exceeds_a_limit() {
        let size = 2 * 1024 * 1024;
        let tokens = format!("{}{}", "[".repeat(UNCLOSED_MAX), "1,".repeat(size / 2));
        let directives: String = (0..size / 16).map(|number| format!("%TAG !t{number}! x\n")).collect();
        for text in [tokens, format!("{directives}--- 1\n")] {
            assert!(parse_documents(&text).unwrap_err()[0].is_limit);
        }
        let ordinary = format!("a: |\n  if [ -z \"$1\" ]; then {{\nb: [{}]\n", "{c: 1}, ".repeat(size / 16));
        assert_eq!(parse_documents(&ordinary).unwrap().len(), 1);
    }

    #[test]
    fn a_text_that_the_library_reads_with_much_memory_exceeds_a_limit() {
        let size = 2 * 1024 * 1024;
        for part in ["- ", "? ", "-\n", "{c: 1}, ", "a: b\n"] {
            let text = format!("{}{}", if part.contains(',') { "[" } else { "" }, part.repeat(size / part.len()));
            let errors = parse_documents(&text).unwrap_err();
            assert!(errors[0].is_limit || part == "a: b\n", "{part:?}: {}", errors[0]);
        }
        let nested = |levels: usize| format!("{}a\n", "- ".repeat(levels));
        assert_eq!(parse_documents(&nested(DEPTH_MAX)).unwrap().len(), 1);
        assert!(parse_documents(&nested(ENTRIES_PER_LINE_MAX + 1)).unwrap_err()[0].is_limit);
        let ruler = format!("a: |\n  {}\n", "- ".repeat(80));
        assert_eq!(parse_documents(&ruler).unwrap().len(), 1);
    }

    #[test]
    fn the_number_of_documents_is_limited() {
        assert_eq!(parse_documents(&"--- 1\n".repeat(DOCUMENTS_MAX)).unwrap().len(), DOCUMENTS_MAX);
        assert!(parse_documents(&"--- 1\n".repeat(DOCUMENTS_MAX + 1)).unwrap_err()[0].is_limit);
        assert!(!parse_documents("a: [1").unwrap_err()[0].is_limit);
    }
}
