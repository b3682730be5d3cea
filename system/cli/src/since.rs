//! A point in the past, as an argument: a time, or a duration before now.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

/// A point in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    Time(Timestamp),
    Ago(SignedDuration),
}

impl Since {
    /// Returns the time.
    pub(crate) fn to_time(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Time(time) => time,
            Self::Ago(duration) => now.checked_sub(duration).unwrap_or(Timestamp::MIN),
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid =
            |_| "it is neither a duration such as 30m, 2h or 48h, nor a time such as 2027-01-31T12:00:00Z".to_owned();
        let ago = text.parse::<SignedDuration>().ok().filter(|duration| !duration.is_negative());
        ago.map_or_else(|| text.parse().map(Self::Time).map_err(invalid), |duration| Ok(Self::Ago(duration)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_ends_now() {
        let now: Timestamp = "2027-01-31T12:00:00Z".parse().unwrap();
        for (text, time) in [
            ("30m", "2027-01-31T11:30:00Z"),
            ("2h", "2027-01-31T10:00:00Z"),
            ("2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            assert_eq!(text.parse::<Since>().unwrap().to_time(now), time.parse::<Timestamp>().unwrap(), "{text}");
        }
        assert!(["", "-2h", "yesterday"].into_iter().all(|text| text.parse::<Since>().is_err()));
    }
}
