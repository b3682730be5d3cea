//! Durations in scenario files: `250ms`, `30s`, `10m`, `2h`.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// A duration in a scenario file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self)
    }
}

/// Prints the duration in milliseconds or in whole seconds, minutes or hours, as a scenario file has it.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        let unit = units.into_iter().find(|(size, _)| millis > 0 && millis.is_multiple_of(*size));
        let (size, name) = unit.unwrap_or((1, "ms"));
        write!(f, "{}{name}", millis / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_printed_as_it_is_read() {
        for text in ["0ms", "250ms", "1500ms", "30s", "90s", "10m", "2h"] {
            assert_eq!(Span::parse(text).map(|span| span.to_string()), Ok(text.to_owned()));
        }
    }

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
