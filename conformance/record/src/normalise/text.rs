//! Finds UIDs, times, tokens and certificates in texts by their looks.

/// Things that are numbered in the order in which they appear.
#[derive(Debug)]
pub struct Numbered {
    prefix: &'static str,
    seen: Vec<String>,
}

impl Numbered {
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, seen: Vec::new() }
    }

    pub fn word(&mut self, thing: &str) -> String {
        let known = self.seen.iter().position(|seen| seen == thing);
        let index = known.unwrap_or_else(|| {
            self.seen.push(thing.to_owned());
            self.seen.len() - 1
        });
        format!("{}-{}", self.prefix, index + 1)
    }
}

/// What a UID looks like: `x` is a hexadecimal digit.
const UID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
/// What a time looks like: `d` is a digit.
const TIME: &str = "dddd-dd-ddTdd:dd:dd";
const SOME_TIME: &str = "2000-01-01T00:00:00";
/// How Go writes the form of a time.
const GO_FORM: &str = "2006-01-02T15:04:05";
/// How the header of every token of a service account begins, and that of other things too.
const TOKEN_START: &str = "eyJ";
/// Header, claims and signature.
const TOKEN_PARTS: usize = 3;

/// Every UID as its number.
pub fn replace_uids(text: &str, uids: &mut Numbered) -> String {
    replace_at(text, |rest| looks_like(rest, UID).then(|| (UID.len(), uids.word(&rest[..UID.len()]))))
}

/// Every time as the same one, with its precision. Those that the script names stay.
pub fn replace_times(text: &str, script: &str) -> String {
    replace_at(text, |rest| {
        let length = time_length(rest)?;
        let time = &rest[..length];
        let fraction: String = time[TIME.len()..].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let is_meant = time.starts_with(GO_FORM) || script.contains(time);
        Some((length, if is_meant { time.to_owned() } else { format!("{SOME_TIME}{fraction}") }))
    })
}

fn time_length(text: &str) -> Option<usize> {
    if !looks_like(text, TIME) {
        return None;
    }
    let rest = &text[TIME.len()..];
    let fraction = rest.strip_prefix('.').map_or(0, |digits| 1 + leading_digits(digits));
    rest[fraction..].starts_with('Z').then_some(TIME.len() + fraction + 1)
}

/// Every token of a service account as its number.
pub fn replace_tokens(text: &str, tokens: &mut Numbered) -> String {
    replace_at(text, |rest| {
        if !rest.starts_with(TOKEN_START) {
            return None;
        }
        let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let token = rest.split(|c| !is_inside(c)).next().unwrap_or_default();
        (token.split('.').count() == TOKEN_PARTS).then(|| (token.len(), tokens.word(token)))
    })
}

/// Certificates, however many, as one word.
pub fn replace_certificates(text: &str) -> String {
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    match (text.find(begin), text.rfind(end)) {
        (Some(from), Some(to)) => {
            format!("{}<certificates>{}", &text[..from], text[to + end.len()..].trim_start_matches('\n'))
        }
        _ => text.to_owned(),
    }
}

/// A known text, where it does not stand inside a longer word or number.
pub fn replace_word(text: &str, word: &str, by: &str) -> String {
    let (mut rest, mut done) = (text, String::new());
    while let Some(at) = rest.find(word).filter(|_| !word.is_empty()) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let stands_alone =
            !before.chars().next_back().or(done.chars().next_back().filter(|_| at == 0)).is_some_and(is_inner)
                && !after.starts_with(is_inner);
        done.push_str(before);
        done.push_str(if stands_alone { by } else { word });
        rest = after;
    }
    done + rest
}

fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Every number that follows a text, replaced.
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

/// Whether a cell of a table says how old something is: `7s`, `3m12s`, `2d`.
pub fn is_age(text: &str) -> bool {
    let mut parts = text.split_inclusive(['s', 'm', 'h', 'd', 'y']);
    let is_part = |part: &str| part.len() > 1 && leading_digits(part) == part.len() - 1;
    !text.is_empty() && parts.all(is_part) && text.ends_with(['s', 'm', 'h', 'd', 'y'])
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn looks_like(text: &str, pattern: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| match wanted {
        b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)
}

/// Replaces what `found` recognises at the start of a rest; it says how long that is and what stands there instead.
fn replace_at(text: &str, mut found: impl FnMut(&str) -> Option<(usize, String)>) -> String {
    let (mut rest, mut done) = (text, String::with_capacity(text.len()));
    while let Some(c) = rest.chars().next() {
        match found(rest) {
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
    fn ages_are_told_from_other_words() {
        assert!(["0s", "1m2s", "12d", "3h"].into_iter().all(is_age));
        assert!(!["", "s", "10", "1x", "web-1s", "5s ago", "0/1"].into_iter().any(is_age));
    }

    #[test]
    fn a_word_inside_another_is_not_replaced() {
        assert_eq!(replace_word("10.0.0.1 10.0.0.12 110.0.0.1 10.0.0.1", "10.0.0.1", "x"), "x 10.0.0.12 110.0.0.1 x");
    }

    #[test]
    fn texts_with_characters_of_many_bytes_are_no_trouble() {
        assert_eq!(replace_times("é2026-11-15T08:48:39Zü", ""), "é2000-01-01T00:00:00Zü");
        assert_eq!(replace_uids("ünïcödé-text-with-many-dashes-inside-of-it-é", &mut Numbered::new("uid")).len(), 49);
    }
}
