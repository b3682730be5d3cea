//! Accessors of timestamps and durations.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::context::{EvaluationResult, Table};
use crate::evaluation_error::EvaluationError;
use crate::time;
use crate::value::Cel;

const NANOS_A_SECOND: i64 = 1_000_000_000;

pub(super) const TABLE: Table = &[
    ("getFullYear", |arguments, _| part(arguments, |point| point.year().into(), None)),
    ("getMonth", |arguments, _| part(arguments, |point| i64::from(point.month()) - 1, None)),
    ("getDayOfYear", |arguments, _| part(arguments, |point| i64::from(point.day_of_year()) - 1, None)),
    ("getDayOfMonth", |arguments, _| part(arguments, |point| i64::from(point.day()) - 1, None)),
    ("getDate", |arguments, _| part(arguments, |point| point.day().into(), None)),
    ("getDayOfWeek", |arguments, _| part(arguments, |point| point.weekday().to_sunday_zero_offset().into(), None)),
    ("getHours", |arguments, _| part(arguments, |point| point.hour().into(), Some(3_600 * NANOS_A_SECOND))),
    ("getMinutes", |arguments, _| part(arguments, |point| point.minute().into(), Some(60 * NANOS_A_SECOND))),
    ("getSeconds", |arguments, _| part(arguments, |point| point.second().into(), Some(NANOS_A_SECOND))),
    ("getMilliseconds", |arguments, _| part(arguments, |point| point.millisecond().into(), Some(1_000_000))),
];

/// Returns a field of a timestamp, or a duration in a unit.
fn part<'a>(arguments: &[Cel<'a>], of: fn(DateTime) -> i64, unit: Option<i64>) -> EvaluationResult<'a> {
    match (arguments, unit) {
        ([Cel::Timestamp(point)], _) => Ok(Cel::Int(of(Offset::UTC.to_datetime(*point)))),
        ([Cel::Timestamp(point), Cel::Text(zone)], _) => Ok(Cel::Int(of(offset(zone)?.to_datetime(*point)))),
        ([Cel::Duration(nanos)], Some(unit)) => Ok(Cel::Int(nanos / unit)),
        (_, _) => Err(EvaluationError::no_such_overload()),
    }
}

/// Parses a zone given as an offset; named zones are not supported.
fn offset(zone: &str) -> Result<Offset, EvaluationError> {
    let signed = if zone.starts_with(['+', '-']) { zone.to_owned() } else { format!("+{zone}") };
    let known = if matches!(zone, "" | "UTC" | "Z") { Some(Offset::UTC) } else { time::offset(&signed) };
    known.ok_or_else(|| EvaluationError::with_redacted(format!("unknown time zone {zone}"), "unknown time zone"))
}
