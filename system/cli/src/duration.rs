//! Durations as arguments.

use jiff::SignedDuration;

const HOURS_OF_DAY: i64 = 24;

/// Parses a duration from zero to a limit: `90s`, `10m`, `1h`, or a number of days such as `7d`.
pub(crate) fn parse_duration(text: &str, max: SignedDuration) -> Result<SignedDuration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u16>().ok());
    let duration = match days {
        Some(days) => Some(SignedDuration::from_hours(i64::from(days) * HOURS_OF_DAY)),
        None => text.parse().ok(),
    };
    let is_valid = |duration: &SignedDuration| !duration.is_negative() && *duration <= max;
    duration
        .filter(is_valid)
        .ok_or_else(|| format!("it is not a duration such as 90s, 10m, 1h or 2d, of at most {max:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_limit_and_is_not_negative() {
        let max = SignedDuration::from_hours(48);
        let parse = |text: &str| parse_duration(text, max).ok().map(|duration| duration.as_secs());
        for (text, seconds) in [("0s", 0), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800)] {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
        for text in ["", "-5s", "3d", "49h", "99999999999999999999s", "9223372036854775807s", "-1d", "d", "soon"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
