//! Durations in scenario files: `250ms`, `30s`, `10m`, `2h`.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// A duration in a scenario file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Span(pub Duration);

impl Span {
    /// Parses a number with its unit.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration: write 250ms, 30s, 10m or 2h");
        let split = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(split);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        number.checked_mul(millis).map(|millis| Self(Duration::from_millis(millis))).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        let millis = |text| Span::parse(text).map(|span| span.0.as_millis());
        assert_eq!(millis("250ms"), Ok(250));
        assert_eq!(millis("10m"), Ok(600_000));
        for wrong in ["", "10", "m", "-1s", "1 s", "1.5s", "99999999999999999999s", "9999999999999999h"] {
            assert!(millis(wrong).is_err(), "{wrong}");
        }
    }
}
