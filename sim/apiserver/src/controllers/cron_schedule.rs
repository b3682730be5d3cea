//! Schedules in the form of cron: five fields, or a word for some of them.

use std::collections::BTreeSet;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// How far ahead the next moment is looked for; some schedules have none, such as the 31st of February.
const DAYS_AHEAD_MAX: usize = 366 * 5;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CronSchedule {
    /// At the minutes that all fields fit.
    Fields(Fields),
    /// Again and again after so long.
    Every(SignedDuration),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    days: BTreeSet<i8>,
    months: BTreeSet<i8>,
    weekdays: BTreeSet<i8>,
    /// Whether any day of the month, or of the week, will do. If both are limited, either is enough.
    any_day: bool,
    any_weekday: bool,
}

impl CronSchedule {
    /// Reads a schedule. The error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => match other.strip_prefix("@every ") {
                Some(span) => return every(span),
                None => other,
            },
        };
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
            return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
        };
        let mut weekdays_read = field(weekdays, 0, 7, &WEEKDAYS)?;
        if weekdays_read.remove(&7) {
            weekdays_read.insert(0);
        }
        Ok(Self::Fields(Fields {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: weekdays_read,
            any_day: days.starts_with(['*', '?']),
            any_weekday: weekdays.starts_with(['*', '?']),
        }))
    }

    /// The first moment after another. `None` when there is none in the next years.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(span) => after.checked_add(*span).ok(),
            Self::Fields(fields) => fields.next(after),
        }
    }

    /// The last moment that is not after another, beginning after a first one.
    pub(super) fn last_until(&self, first: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let mut last = None;
        let mut at = first;
        while let Some(next) = self.next(at).filter(|next| *next <= now) {
            last = Some(next);
            at = next;
        }
        last
    }
}

impl Fields {
    fn fits(&self, date: Date) -> bool {
        let day = self.days.contains(&date.day());
        let weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
        let fits = if self.any_day || self.any_weekday { day && weekday } else { day || weekday };
        self.months.contains(&date.month()) && fits
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = after.to_zoned(TimeZone::UTC);
        let mut date = start.date();
        for _ in 0..DAYS_AHEAD_MAX {
            if self.fits(date) {
                let times = self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)));
                for (hour, minute) in times {
                    let at = date.to_datetime(Time::new(hour, minute, 0, 0).ok()?);
                    let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp();
                    if at > after {
                        return Some(at);
                    }
                }
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }
}

fn every(span: &str) -> Result<CronSchedule, String> {
    let wrong = || format!("failed to parse duration @every {span}");
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
            _ => return Err(wrong()),
        };
        let number: i64 = std::mem::take(&mut digits).parse().map_err(|_| wrong())?;
        seconds = number.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
    }
    if !digits.is_empty() {
        return Err(wrong());
    }
    Ok(CronSchedule::Every(SignedDuration::from_secs(seconds.max(1))))
}

/// One field: values, ranges and steps, with commas between them.
fn field(text: &str, least: i8, most: i8, names: &[&str]) -> Result<BTreeSet<i8>, String> {
    let mut values = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, ""));
        let step: usize = if step.is_empty() { 1 } else { step.parse().map_err(|_| wrong(part))? };
        let number = |word: &str| read(word, least, names).ok_or_else(|| wrong(part));
        let (first, last) = match range {
            "*" | "?" => (least, most),
            _ => match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                // A single value with a step goes on to the end.
                None if part.contains('/') => (number(range)?, most),
                None => (number(range)?, number(range)?),
            },
        };
        if step == 0 || first < least || last > most || first > last {
            return Err(wrong(part));
        }
        values.extend((first..=last).step_by(step));
    }
    Ok(values)
}

fn wrong(part: &str) -> String {
    format!("failed to parse {part:?} in a schedule")
}

fn read(word: &str, least: i8, names: &[&str]) -> Option<i8> {
    let named = names.iter().position(|name| word.eq_ignore_ascii_case(name));
    match named {
        Some(index) => i8::try_from(index).ok().map(|index| index + least),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let schedule = CronSchedule::parse(schedule).expect("a schedule");
        schedule.next(after.parse().expect("a time")).map(|at| at.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_next_moment_is_found() {
        assert_eq!(next("*/15 * * * *", "2026-01-01T00:07:30Z"), "2026-01-01T00:15:00Z");
        assert_eq!(next("0 6 * * mon-fri", "2026-01-02T06:00:00Z"), "2026-01-05T06:00:00Z");
        assert_eq!(next("30 2 1 feb *", "2026-03-01T00:00:00Z"), "2027-02-01T02:30:00Z");
        assert_eq!(next("0 0 13 * 5", "2026-01-01T00:00:00Z"), "2026-01-02T00:00:00Z", "either day is enough");
        assert_eq!(next("@every 1h30m", "2026-01-01T00:00:00Z"), "2026-01-01T01:30:00Z");
        assert_eq!(next("0 0 31 2 *", "2026-01-01T00:00:00Z"), "");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "* * * *", "61 * * * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@every soon"] {
            assert!(CronSchedule::parse(text).is_err(), "{text}");
        }
    }
}
