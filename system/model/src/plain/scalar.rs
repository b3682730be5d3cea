//! Keys, words, numbers and quotes, as far as there can be no doubt what they are.

use memchr::memchr2;

/// The longest key and the longest number that are read here.
const KEY_BYTES_MAX: usize = 256;
const DIGITS_MAX: usize = 18;
/// The characters of keys. Every line is looked at, and looking up is faster than comparing.
static IS_OF_KEY: [bool; 256] = {
    let (mut is_of_key, mut byte) = ([false; 256], 0_u8);
    while byte.is_ascii() {
        is_of_key[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-');
        byte += 1;
    }
    is_of_key
};
/// Plain words, in any case, that are or may be something else than text, where nothing else is known of them.
const WORDS: [&str; 8] = ["null", "true", "false", "nan", "inf", "infinity", ".nan", ".inf"];

/// What stands for itself.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'a> {
    /// Truth, nothing and whole numbers, which JSON writes the same.
    Word(&'a str),
    Text(&'a str),
}

/// A key, and what stands behind its colon.
pub(super) fn key(content: &str) -> Option<(&str, &str)> {
    let end = content.bytes().position(|byte| !IS_OF_KEY[usize::from(byte)]).filter(|end| *end < KEY_BYTES_MAX)?;
    let (key, rest) = content.split_at(end);
    // A dot before a digit begins a number.
    let first = key.strip_prefix('.').unwrap_or(key);
    let begins_well = first.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '/'));
    let value = rest.strip_prefix(':').filter(|value| value.is_empty() || value.starts_with(' '))?;
    (begins_well && !is_word(key)).then_some((key, value.trim_start_matches(' ')))
}

fn is_word(text: &str) -> bool {
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

pub(super) fn scalar(text: &str) -> Option<Scalar<'_>> {
    match text.as_bytes() {
        b"true" | b"false" | b"null" => Some(Scalar::Word(text)),
        [b'"', inner @ .., b'"'] if !inner.iter().any(|byte| matches!(byte, b'"' | b'\\')) => quoted(text),
        [b'\'', inner @ .., b'\''] if !inner.contains(&b'\'') => quoted(text),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'/' | b'$' | b'(', ..] if !is_word(text) => plain(text),
        [b'0'..=b'9', ..] => number(text).or_else(|| is_no_number(text).then(|| plain(text))?),
        // An option of a command line.
        [b'-', b'-' | b'a'..=b'z' | b'A'..=b'Z', ..] if !is_word(text.trim_start_matches('-')) => plain(text),
        _ => None,
    }
}

fn quoted(text: &str) -> Option<Scalar<'_>> {
    Some(Scalar::Text(&text[1..text.len() - 1]))
}

/// Text without quotes, on one line.
fn plain(text: &str) -> Option<Scalar<'_>> {
    let may_be_more = memchr2(b':', b'#', text.as_bytes()).is_some();
    let is_more = may_be_more && (text.contains(": ") || text.contains(" #") || text.ends_with(':'));
    (!is_more).then_some(Scalar::Text(text))
}

fn number(text: &str) -> Option<Scalar<'_>> {
    let is_whole = text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_decimal = text == "0" || !text.starts_with('0');
    (is_whole && is_decimal).then_some(Scalar::Word(text))
}

/// Whether what begins with a digit can be no number: it has characters that no number has, or two dots.
fn is_no_number(text: &str) -> bool {
    let is_of_number =
        |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'x' | b'X' | b'o' | b'O' | b'_' | b'.' | b'+' | b'-');
    let dots = text.bytes().filter(|byte| *byte == b'.').count();
    dots > 1 || !text.bytes().all(is_of_number)
}
