//! Cron schedules: five fields, or a macro such as `@daily`.

use std::collections::BTreeSet;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// Number of days searched for the next time; some schedules have none, such as the 31st of February.
const DAYS_AHEAD_MAX: usize = 366 * 5;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A parsed schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CronSchedule {
    /// The minutes that all fields match.
    Fields(CronFields),
    /// A fixed interval.
    Every(SignedDuration),
}

/// Values that each of the five fields allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronFields {
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    days: BTreeSet<i8>,
    months: BTreeSet<i8>,
    weekdays: BTreeSet<i8>,
    /// True if any day of the month matches. If neither this nor `any_weekday` is true, one matching day field is enough.
    any_day: bool,
    /// True if any day of the week matches.
    any_weekday: bool,
}

impl CronSchedule {
    /// Parses a schedule. The error describes the problem.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => match other.strip_prefix("@every ") {
                Some(span) => return parse_interval(span),
                None => other,
            },
        };
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
        };
        let mut weekday_values = parse_field(weekdays, 0, 7, &WEEKDAYS)?;
        if weekday_values.remove(&7) {
            weekday_values.insert(0);
        }
        Ok(Self::Fields(CronFields {
            minutes: parse_field(minutes, 0, 59, &[])?,
            hours: parse_field(hours, 0, 23, &[])?,
            days: parse_field(days, 1, 31, &[])?,
            months: parse_field(months, 1, 12, &MONTHS)?,
            weekdays: weekday_values,
            any_day: days.starts_with(['*', '?']),
            any_weekday: weekdays.starts_with(['*', '?']),
        }))
    }

    /// Returns the first scheduled time after `after`. `None` if there is none in the next years.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => after.checked_add(*span).ok(),
            Self::Fields(fields) => fields.next(after),
        }
    }

    /// Returns the last scheduled time after `first` and not after `now`.
    pub(super) fn last_until(&self, first: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let mut last = None;
        let mut time = first;
        while let Some(next) = self.next(time).filter(|next| *next <= now) {
            last = Some(next);
            time = next;
        }
        last
    }
}

impl CronFields {
    fn matches_date(&self, date: Date) -> bool {
        let day = self.days.contains(&date.day());
        let weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
        let matches_day = if self.any_day || self.any_weekday { day && weekday } else { day || weekday };
        self.months.contains(&date.month()) && matches_day
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = after.to_zoned(TimeZone::UTC);
        let mut date = start.date();
        for _ in 0..DAYS_AHEAD_MAX {
            if self.matches_date(date) {
                let times = self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)));
                for (hour, minute) in times {
                    let time = date.to_datetime(Time::new(hour, minute, 0, 0).ok()?);
                    let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
                    if time > after {
                        return Some(time);
                    }
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }
}

fn parse_interval(span: &str) -> Result<CronSchedule, String> {
    let error = || format!("failed to parse duration @every {span}");
    let mut seconds: i64 = 0;
    let mut digits = String::new();
    for character in span.trim().chars() {
        let unit = match character {
            '0'..='9' => {
                digits.push(character);
                continue;
            }
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return Err(error()),
        };
        let number: i64 = std::mem::take(&mut digits).parse().map_err(|_| error())?;
        seconds = number.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(error)?;
    }
    if !digits.is_empty() {
        return Err(error());
    }
    Ok(CronSchedule::Every(SignedDuration::from_secs(seconds.max(1))))
}

/// Parses one field: values, ranges and steps, separated by commas.
fn parse_field(text: &str, min: i8, max: i8, names: &[&str]) -> Result<BTreeSet<i8>, String> {
    let mut values = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, ""));
        let step: usize = if step.is_empty() { 1 } else { step.parse().map_err(|_| parse_error(part))? };
        let number = |word: &str| parse_value(word, min, names).ok_or_else(|| parse_error(part));
        let (first, last) = match range {
            "*" | "?" => (min, max),
            _ => match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                // A single value with a step extends to the end of the range.
                None if part.contains('/') => (number(range)?, max),
                None => (number(range)?, number(range)?),
            },
        };
        if step == 0 || first < min || last > max || first > last {
            return Err(parse_error(part));
        }
        values.extend((first..=last).step_by(step));
    }
    Ok(values)
}

fn parse_error(part: &str) -> String {
    format!("failed to parse {part:?} in a schedule")
}

fn parse_value(word: &str, min: i8, names: &[&str]) -> Option<i8> {
    let named = names.iter().position(|name| word.eq_ignore_ascii_case(name));
    match named {
        Some(index) => i8::try_from(index).ok().map(|index| index + min),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let schedule = CronSchedule::parse(schedule).expect("a schedule");
        schedule.next(after.parse().expect("a time")).map(|time| time.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_next_scheduled_time_is_found() {
        assert_eq!(next("*/15 * * * *", "2026-01-01T00:07:30Z"), "2026-01-01T00:15:00Z");
        assert_eq!(next("0 6 * * mon-fri", "2026-01-02T06:00:00Z"), "2026-01-05T06:00:00Z");
        assert_eq!(next("30 2 1 feb *", "2026-03-01T00:00:00Z"), "2027-02-01T02:30:00Z");
        assert_eq!(next("0 0 13 * 5", "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z", "either day is enough");
        assert_eq!(next("@every 1h30m", "2026-01-01T00:00:00Z"), "2026-01-01T01:30:00Z");
        assert_eq!(next("0 0 31 2 *", "2026-01-01T00:00:00Z"), "");
    }

    #[test]
    fn malformed_schedules_are_rejected() {
        for text in ["", "* * * *", "61 * * * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@every soon"] {
            assert!(CronSchedule::parse(text).is_err(), "{text}");
        }
    }
}
