//! Timestamps and durations in the formats of Go and of OpenAPI schemas.

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

const NANOS_A_SECOND: i64 = 1_000_000_000;
/// Units of Go's durations in nanoseconds; a longer name comes before its prefix.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_A_SECOND),
    ("m", 60 * NANOS_A_SECOND),
    ("h", 3_600 * NANOS_A_SECOND),
];
/// Units of the schema format `duration`: exact names, a prefix, and nanoseconds.
const LONG_UNITS: [(&[&str], &str, i64); 8] = [
    (&["ns"], "nano", 1),
    (&["us", "µs"], "micro", 1_000),
    (&["ms"], "milli", 1_000_000),
    (&["s"], "sec", NANOS_A_SECOND),
    (&["m"], "min", 60 * NANOS_A_SECOND),
    (&["h", "hr"], "hour", 3_600 * NANOS_A_SECOND),
    (&["d"], "day", 24 * 3_600 * NANOS_A_SECOND),
    (&["w", "wk"], "week", 7 * 24 * 3_600 * NANOS_A_SECOND),
];

/// Parses a date: `2026-01-31`.
pub fn date(text: &str) -> Option<Date> {
    let is_right = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    is_right.then(|| text.parse().ok())?
}

/// Parses a timestamp: `2026-01-31T12:00:00Z`, also with a fraction and an offset.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    let (day, clock) = text.split_once('T')?;
    let at = clock.find(['Z', '+', '-'])?;
    let (clock, zone) = clock.split_at_checked(at)?;
    at_offset(date(day)?, clock, offset(zone)?)
}

/// Parses a timestamp in the schema format: the offset may be missing, and an empty text is the Unix epoch.
pub fn schema_timestamp(text: &str) -> Option<Timestamp> {
    if text.is_empty() {
        return Some(Timestamp::UNIX_EPOCH);
    }
    timestamp(text).or_else(|| {
        let (day, clock) = text.split_once('T')?;
        at_offset(date(day)?, clock, Offset::UTC)
    })
}

/// Returns midnight of a date.
pub(crate) fn midnight(day: Date) -> Option<Timestamp> {
    Offset::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()
}

fn at_offset(day: Date, clock: &str, offset: Offset) -> Option<Timestamp> {
    let (whole, fraction) = clock.split_once('.').map_or((clock, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut parts = whole.split(':').map(two_digits);
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let nanos = fraction.map_or(Some(0), nanos)?;
    offset.to_timestamp(day.at(hours, minutes, seconds, nanos)).ok()
}

fn two_digits(text: &str) -> Option<i8> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Parses a fraction of a second as nanoseconds; further digits are ignored.
fn nanos(digits: &str) -> Option<i32> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{:0<9}", digits.get(..9).unwrap_or(digits)).parse().ok()
}

/// Parses an offset: `Z` or `+02:00`.
pub(crate) fn offset(text: &str) -> Option<Offset> {
    if text == "Z" {
        return Some(Offset::UTC);
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    let seconds = (i32::from(hours) * 60 + i32::from(minutes)) * 60;
    if hours > 24 || minutes > 59 { None } else { Offset::from_seconds(sign * seconds).ok() }
}

/// Parses a Go duration to nanoseconds: `1h30m`, `-1.5s`, `0`.
pub fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|character: char| !(character.is_ascii_digit() || character == '.'))?;
        let (number, after) = rest.split_at_checked(end)?;
        let (name, size) =
            UNITS.iter().filter(|(name, _)| after.starts_with(name)).max_by_key(|(name, _)| name.len())?;
        total = total.checked_add(scaled(number, *size)?)?;
        rest = after.get(name.len()..)?;
    }
    i64::try_from(sign * total).ok()
}

/// Parses a number with a fraction in units of a size.
fn scaled(number: &str, size: i64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = fraction.get(..fraction.len().min(18))?;
    let part: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let power = 10_i128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    (whole * i128::from(size)).checked_add(part * i128::from(size) / power)
}

/// Parses a duration in the schema format: a Go duration, or `3 days`.
pub fn schema_duration(text: &str) -> Option<i64> {
    duration(text).or_else(|| {
        let mut total: Option<i64> = None;
        let mut rest = text;
        while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
            let (number, after) = cut(&rest[start..], |character| character.is_ascii_digit());
            let (unit, after) =
                cut(after.trim_start(), |character| character.is_ascii_alphabetic() || character == 'µ');
            rest = after;
            if let Some(size) = long_unit(&unit.to_lowercase()) {
                let more = number.parse::<i64>().ok()?.wrapping_mul(size);
                total = Some(total.unwrap_or_default().wrapping_add(more));
            }
        }
        total
    })
}

fn cut(text: &str, belongs: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|character| !belongs(character)).unwrap_or(text.len()))
}

fn long_unit(name: &str) -> Option<i64> {
    let unit = LONG_UNITS.iter().find(|(whole, beginning, _)| whole.contains(&name) || name.starts_with(beginning));
    unit.map(|(_, _, size)| *size)
}

/// Formats nanoseconds as seconds, as CEL does.
pub(crate) fn seconds(nanos: i64) -> String {
    let (whole, part) = (nanos / NANOS_A_SECOND, (nanos % NANOS_A_SECOND).unsigned_abs());
    let sign = if nanos < 0 && whole == 0 { "-" } else { "" };
    let fraction = format!("{part:09}");
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}s"),
        fraction => format!("{sign}{whole}.{fraction}s"),
    }
}

/// Adds a duration to a timestamp; `None` outside the years 1 to 9999.
pub(crate) fn plus(start: Timestamp, nanos: i64) -> Option<Timestamp> {
    start.checked_add(SignedDuration::from_nanos(nanos)).ok().filter(|end| is_in_range(*end))
}

/// Returns true if CEL supports this timestamp.
pub(crate) fn is_in_range(point: Timestamp) -> bool {
    (1..=9999).contains(&Offset::UTC.to_datetime(point).year())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_parsed_strictly() {
        for (text, expected) in [
            ("2026-01-31T12:00:00Z", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31T12:00:00.5+02:00", Some("2026-01-31T10:00:00.5Z")),
            ("2026-02-30T12:00:00Z", None),
            ("2026-01-31 12:00:00Z", None),
            ("2026-01-31T12:00Z", None),
            ("2026-01-31T24:00:00Z", None),
            ("2026-01-31T12:00:00", None),
            ("2026-01-31T12:00:00.Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(timestamp(text).map(|point| point.to_string()).as_deref(), expected, "{text}");
        }
        assert!(schema_timestamp("2026-01-31T12:00:00").is_some() && schema_timestamp("").is_some());
    }

    #[test]
    fn durations_are_parsed_as_in_go() {
        for (text, expected) in [
            ("1h30m", Some("5400s")),
            ("-1.5s", Some("-1.5s")),
            ("0", Some("0s")),
            ("100ms", Some("0.1s")),
            ("1µs", Some("0.000001s")),
            (".5s", Some("0.5s")),
            ("1", None),
            ("s", None),
            ("1d", None),
            ("", None),
            ("9999999999h", None),
        ] {
            assert_eq!(duration(text).map(seconds).as_deref(), expected, "{text}");
        }
        assert_eq!(schema_duration("2 days 1 hour").map(seconds).as_deref(), Some("176400s"));
        assert_eq!(schema_duration("soon"), None);
    }
}
