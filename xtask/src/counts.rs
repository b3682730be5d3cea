//! Numbers of what passed, failed and was skipped, and their one line of text.

use std::fmt::{Display, Formatter, Result as Formatted};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    /// Reasons why something did not run.
    pub skipped: Vec<String>,
}

const SKIPPED: &str = "; skipped: ";
const BETWEEN_REASONS: &str = "; ";

impl Counts {
    /// One check.
    pub fn from_success(success: bool) -> Self {
        Self { passed: u64::from(success), failed: u64::from(!success), skipped: Vec::new() }
    }

    /// Nothing ran.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self { skipped: vec![reason.into()], ..Self::default() }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped.iter().cloned());
        self
    }

    /// Reads the text that `Display` writes.
    pub fn parse(line: &str) -> Option<Self> {
        let (numbers, skipped) = line.split_once(SKIPPED).unwrap_or((line, ""));
        let (passed, failed) = numbers.split_once(" passed, ")?;
        Some(Self {
            passed: passed.parse().ok()?,
            failed: failed.strip_suffix(" failed")?.parse().ok()?,
            skipped: skipped.split(BETWEEN_REASONS).filter(|reason| !reason.is_empty()).map(str::to_owned).collect(),
        })
    }

    /// Adds the result line of a test binary: `test result: ok. 3 passed; 0 failed; …`.
    pub fn add_test_result(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += number_before(result, " passed");
            self.failed += number_before(result, " failed");
        }
    }
}

impl Display for Counts {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Formatted {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped.is_empty() {
            return Ok(());
        }
        write!(formatter, "{SKIPPED}{}", self.skipped.join(BETWEEN_REASONS))
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    before
        .rsplit(|character: char| !character.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_text_is_read_back() {
        let counts = Counts { passed: 12, failed: 3, skipped: vec!["control plane: no Go".to_owned()] };
        assert_eq!(counts.to_string(), "12 passed, 3 failed; skipped: control plane: no Go");
        assert_eq!(Counts::parse(&counts.to_string()), Some(counts));
        assert_eq!(Counts::parse("error: something"), None);
    }

    #[test]
    fn results_of_test_binaries_add_up() {
        let mut counts = Counts::default();
        counts.add_test_result("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured");
        counts.add_test_result("test result: FAILED. 4 passed; 2 failed; 0 ignored");
        counts.add_test_result("running 3 tests");
        assert_eq!(counts, Counts { passed: 7, failed: 2, skipped: Vec::new() });
    }
}
