//! Times as people say them: "3 min ago".

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Age from which the date is shown instead.
const DATE_FROM: i64 = 60 * DAY;

/// Formats a time relative to `now`.
pub(crate) fn format_age(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - time.as_second();
    if seconds.abs() >= DATE_FROM {
        return time.strftime("%Y-%m-%d").to_string();
    }
    let amount = match seconds.abs() {
        0 => return "now".to_owned(),
        seconds if seconds < MINUTE => format!("{seconds} s"),
        seconds if seconds < HOUR => format!("{} min", seconds / MINUTE),
        seconds if seconds < DAY => format!("{} h", seconds / HOUR),
        seconds => format!("{} d", seconds / DAY),
    };
    if seconds > 0 { format!("{amount} ago") } else { format!("in {amount}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_its_largest_unit_and_an_old_one_as_a_date() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let cases = [
            (0, "now"),
            (1, "1 s ago"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (200, "3 min ago"),
            (HOUR, "1 h ago"),
            (2 * DAY - 1, "1 d ago"),
            (DATE_FROM - 1, "59 d ago"),
            (DATE_FROM, "2026-11-16"),
            (-1, "in 1 s"),
            (-DAY, "in 1 d"),
            (-DATE_FROM, "2027-03-16"),
        ];
        for (age, text) in cases {
            assert_eq!(format_age(Timestamp::from_second(now.as_second() - age).unwrap(), now), text, "{age}");
        }
    }
}
