//! String formats that schemas may name. Unknown formats are ignored.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use sindri_cel::{Pattern, time};

/// Formats that a pattern defines completely.
const PATTERNS: [(&str, &str); 12] = [
    ("byte", r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
    ("hexcolor", r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    ("k8s-long-name", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    ("k8s-short-name", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    (
        "mac",
        r"^(([0-9a-fA-F]{2}:){5}|([0-9a-fA-F]{2}:){7}|([0-9a-fA-F]{2}:){19}|([0-9a-fA-F]{2}-){5}|([0-9a-fA-F]{2}-){7}|([0-9a-fA-F]{2}-){19}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){3}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){9}[0-9a-fA-F]{2})[0-9a-fA-F]{2}$",
    ),
    (
        "rgbcolor",
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
    ),
    ("ssn", r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    ("uuid", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid3", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
];
/// Formats that need code, or accept everything.
const OTHER_FORMATS: [&str; 17] = [
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "password",
    "uri",
    "int32",
    "int64",
];
/// Maximum lengths of names.
const HOSTNAME_BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;
const LONG_NAME_BYTES_MAX: usize = 253;
const SSN_BYTES: usize = 11;

static COMPILED: LazyLock<Vec<(&str, Pattern)>> = LazyLock::new(|| {
    let compiled = PATTERNS.into_iter().filter_map(|(name, pattern)| Some((name, Pattern::new(pattern).ok()?)));
    compiled.collect()
});

/// True if a format is known.
pub(super) fn is_known(format: &str) -> bool {
    let numbers = ["float", "double"];
    PATTERNS.iter().any(|(known, _)| *known == format) || OTHER_FORMATS.contains(&format) || numbers.contains(&format)
}

/// True if a string has a format; `None` if the format is unknown.
pub(super) fn matches_format(format: &str, text: &str) -> Option<bool> {
    if let Some((_, pattern)) = COMPILED.iter().find(|(known, _)| *known == format) {
        return Some(pattern.is_in(text) && has_valid_length(format, text));
    }
    Some(match format {
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => time::date(text).is_some(),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => time::schema_duration(text).is_some(),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && parse_ip(text).is_some(),
        "ipv6" => text.contains(':') && parse_ip(text).is_some(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "password" => true,
        "uri" => is_request_uri(text),
        _ => return None,
    })
}

fn has_valid_length(format: &str, text: &str) -> bool {
    match format {
        "k8s-short-name" => text.len() <= LABEL_BYTES_MAX,
        "k8s-long-name" => text.len() <= LONG_NAME_BYTES_MAX,
        // The pattern also matches without the separators.
        "ssn" => text.len() == SSN_BYTES,
        _ => true,
    }
}

/// True for one label, or several of which the last consists of letters.
fn is_hostname(text: &str) -> bool {
    static SYMBOL_OR_LETTER: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"^[\p{S}\p{L}]$").ok());
    let fits = |letter: char| {
        let is_symbol_or_letter =
            || SYMBOL_OR_LETTER.as_ref().is_some_and(|pattern| pattern.is_in(letter.encode_utf8(&mut [0; 4])));
        letter.is_ascii_alphanumeric() || is_symbol_or_letter()
    };
    let is_inner = |label: &str| {
        let ends = label.starts_with(fits) && label.ends_with(fits);
        ends && label.chars().all(|letter| letter == '-' || fits(letter))
    };
    let is_short = text.len() <= HOSTNAME_BYTES_MAX && text.split('.').all(|label| label.len() <= LABEL_BYTES_MAX);
    is_short
        && match text.rsplit_once('.') {
            None => {
                text.starts_with(fits)
                    && text.chars().filter(|letter| *letter != '-').all(fits)
                    && is_single_label(text)
            }
            Some((labels, last)) => {
                labels.split('.').all(is_inner) && last.chars().count() >= 2 && last.chars().all(char::is_alphabetic)
            }
        }
}

/// True if a single label has at most one dash, after its first letter.
fn is_single_label(label: &str) -> bool {
    let dash =
        label.char_indices().filter(|(_, letter)| *letter == '-').map(|(index, _)| label[..index].chars().count());
    dash.into_iter().all(|index| index == 1) && !label.contains("--")
}

/// True for a date, `T` or `t`, and a time of day with an offset.
fn is_date_time(text: &str) -> bool {
    static CLOCK: LazyLock<Option<Pattern>> =
        LazyLock::new(|| Pattern::new("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok());
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(day), Some(clock)) = (parts.next(), parts.next()) else { return false };
    let part = |range: std::ops::Range<usize>, max: &str| clock.get(range).is_some_and(|part| part <= max);
    time::date(day).is_some()
        && CLOCK.as_ref().is_some_and(|pattern| pattern.is_in(clock))
        && part(0..2, "23")
        && part(3..5, "59")
        && part(6..8, "59")
}

/// Parses an IP address; leading zeros in IPv4 are allowed.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let parse_v4 = || -> Option<Ipv4Addr> {
        let mut octets = [0_u8; 4];
        let mut parts = text.split('.');
        for octet in &mut octets {
            let part =
                parts.next().filter(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))?;
            *octet = part.parse().ok()?;
        }
        parts.next().is_none().then(|| octets.into())
    };
    text.parse().ok().or_else(|| parse_v4().map(IpAddr::V4))
}

fn is_cidr(text: &str) -> bool {
    let Some((start, length)) = text.split_once('/') else { return false };
    let max = match parse_ip(start) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    !length.is_empty()
        && length.bytes().all(|byte| byte.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|length| length <= max)
}

/// True for `a@b`, also in the form `name <a@b>`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|inside| inside.split_once('<')) {
        Some((_, address)) => address,
        None => text,
    };
    let is_atom = |part: &str| {
        let fits = |character: char| {
            !character.is_ascii() || character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character)
        };
        !part.is_empty() && part.split('.').all(|atom| !atom.is_empty() && atom.chars().all(fits))
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| is_atom(local) && is_atom(domain))
}

/// True for a request URI: absolute, or a path from the root.
fn is_request_uri(text: &str) -> bool {
    let is_forbidden = |character: char| character.is_ascii_control() || character == ' ';
    if text.is_empty() || text.chars().any(is_forbidden) {
        return false;
    }
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character))
    };
    text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
}

fn digits(text: &str) -> String {
    text.chars().filter(|character| !matches!(character, ' ' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = digits(text);
    if digits.len() != 10 {
        return false;
    }
    let value = |(index, character): (usize, char)| match character {
        'X' if index == 9 => Some(10),
        other => other.to_digit(10),
    };
    let values: Option<Vec<u32>> = digits.chars().enumerate().map(value).collect();
    values.is_some_and(|values| values.iter().zip(1..).map(|(value, weight)| value * weight).sum::<u32>() % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let values: Option<Vec<u32>> = digits(text).chars().map(|character| character.to_digit(10)).collect();
    values.filter(|values| values.len() == 13).is_some_and(|values| {
        let weighted = values.iter().enumerate().map(|(index, value)| if index % 2 == 0 { *value } else { value * 3 });
        weighted.sum::<u32>() % 10 == 0
    })
}

/// Checks the Luhn checksum.
fn is_credit_card(text: &str) -> bool {
    let values: Option<Vec<u32>> = digits(text).chars().map(|character| character.to_digit(10)).collect();
    values.filter(|values| (13..=19).contains(&values.len())).is_some_and(|values| {
        let doubled = values.iter().rev().enumerate().map(|(index, value)| match index % 2 {
            0 => *value,
            _ if *value > 4 => value * 2 - 9,
            _ => value * 2,
        });
        doubled.sum::<u32>() % 10 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), PATTERNS.len());
    }

    #[test]
    fn an_unknown_format_is_ignored() {
        assert_eq!(matches_format("unheard-of", "x"), None);
        assert!(!is_known("unheard-of") && is_known("int32") && is_known("uuid"));
    }
}
