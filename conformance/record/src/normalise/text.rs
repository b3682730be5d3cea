//! Finds UIDs, times, tokens and certificates in texts by their format, and replaces them.

/// Placeholders that are numbered in the order of first appearance.
#[derive(Debug)]
pub struct Numbered {
    prefix: &'static str,
    seen: Vec<String>,
}

impl Numbered {
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, seen: Vec::new() }
    }

    pub fn placeholder(&mut self, value: &str) -> String {
        let known = self.seen.iter().position(|seen| seen == value);
        let index = known.unwrap_or_else(|| {
            self.seen.push(value.to_owned());
            self.seen.len() - 1
        });
        format!("{}-{}", self.prefix, index + 1)
    }
}

/// Format of a UID: `x` is a hexadecimal digit.
const UID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
/// Format of a time: `d` is a digit.
const TIME: &str = "dddd-dd-ddTdd:dd:dd";
const PLACEHOLDER_TIME: &str = "2000-01-01T00:00:00";
/// Go's layout of a time, which appears in error messages.
const GO_LAYOUT: &str = "2006-01-02T15:04:05";
/// Prefix of service account tokens, and of other base64-encoded JSON.
const TOKEN_START: &str = "eyJ";
/// Parts of a token: header, claims and signature.
const TOKEN_PARTS: usize = 3;

/// Replaces every UID by its placeholder.
pub fn replace_uids(text: &str, uids: &mut Numbered) -> String {
    replace_at(text, |rest| matches_format(rest, UID).then(|| (UID.len(), uids.placeholder(&rest[..UID.len()]))))
}

/// Replaces every time by the same one, with its precision. Times in the script are kept.
pub fn replace_times(text: &str, script: &str) -> String {
    replace_at(text, |rest| {
        let length = time_length(rest)?;
        let time = &rest[..length];
        let fraction: String = time[TIME.len()..].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let is_literal = time.starts_with(GO_LAYOUT) || script.contains(time);
        Some((length, if is_literal { time.to_owned() } else { format!("{PLACEHOLDER_TIME}{fraction}") }))
    })
}

fn time_length(text: &str) -> Option<usize> {
    if !matches_format(text, TIME) {
        return None;
    }
    let rest = &text[TIME.len()..];
    let fraction = rest.strip_prefix('.').map_or(0, |digits| 1 + leading_digits(digits));
    rest[fraction..].starts_with('Z').then_some(TIME.len() + fraction + 1)
}

/// Replaces every service account token by its placeholder.
pub fn replace_tokens(text: &str, tokens: &mut Numbered) -> String {
    replace_at(text, |rest| {
        if !rest.starts_with(TOKEN_START) {
            return None;
        }
        let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let token = rest.split(|c| !is_inside(c)).next().unwrap_or_default();
        (token.split('.').count() == TOKEN_PARTS).then(|| (token.len(), tokens.placeholder(token)))
    })
}

/// Replaces all certificates by one placeholder.
pub fn replace_certificates(text: &str) -> String {
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    match (text.find(begin), text.rfind(end)) {
        (Some(from), Some(to)) => {
            format!("{}<certificates>{}", &text[..from], text[to + end.len()..].trim_start_matches('\n'))
        }
        _ => text.to_owned(),
    }
}

/// Replaces a text, unless it is part of a longer word or number.
pub fn replace_word(text: &str, word: &str, by: &str) -> String {
    let (mut rest, mut done) = (text, String::new());
    while let Some(at) = rest.find(word).filter(|_| !word.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_separate =
            !before.chars().next_back().or(done.chars().next_back().filter(|_| at == 0)).is_some_and(is_inner)
                && !after.starts_with(is_inner);
        done.push_str(before);
        done.push_str(if is_separate { by } else { word });
        rest = after;
    }
    done + rest
}

fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Replaces every number that follows a text.
pub fn digits_after(text: &str, before: &str, replace: impl Fn(&str) -> String) -> String {
    let mut parts = text.split(before);
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(leading_digits(part));
        done.push_str(before);
        done.push_str(&if digits.is_empty() { String::new() } else { replace(digits) });
        done.push_str(rest);
    }
    done
}

/// Returns true for an age in a table: `7s`, `3m12s`, `2d`.
pub fn is_age(text: &str) -> bool {
    let mut parts = text.split_inclusive(['s', 'm', 'h', 'd', 'y']);
    let is_part = |part: &str| part.len() > 1 && leading_digits(part) == part.len() - 1;
    !text.is_empty() && parts.all(is_part) && text.ends_with(['s', 'm', 'h', 'd', 'y'])
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn matches_format(text: &str, pattern: &str) -> bool {
    let fits = |(byte, expected): (u8, u8)| match expected {
        b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)
}

/// Replaces parts of a text. `find` gets the rest of the text at each position, and returns the length of a match and its
/// replacement.
fn replace_at(text: &str, mut find: impl FnMut(&str) -> Option<(usize, String)>) -> String {
    let (mut rest, mut done) = (text, String::with_capacity(text.len()));
    while let Some(c) = rest.chars().next() {
        match find(rest) {
            Some((length, by)) => {
                done.push_str(&by);
                rest = &rest[length..];
            }
            None => {
                done.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_distinguished_from_other_words() {
        assert!(["0s", "1m2s", "12d", "3h"].into_iter().all(is_age));
        assert!(!["", "s", "10", "1x", "web-1s", "5s ago", "0/1"].into_iter().any(is_age));
    }

    #[test]
    fn a_word_inside_another_is_not_replaced() {
        assert_eq!(replace_word("10.0.0.1 10.0.0.12 110.0.0.1 10.0.0.1", "10.0.0.1", "x"), "x 10.0.0.12 110.0.0.1 x");
    }

    #[test]
    fn multi_byte_characters_are_preserved() {
        assert_eq!(replace_times("é2026-11-15T08:48:39Zü", ""), "é2000-01-01T00:00:00Zü");
        assert_eq!(replace_uids("ünïcödé-text-with-many-dashes-inside-of-it-é", &mut Numbered::new("uid")).len(), 49);
    }
}
