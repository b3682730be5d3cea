//! Numbers of what passed, failed and was skipped, and their one line of text.

use std::fmt::{Display, Formatter, Result as Formatted};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    /// Reasons why something did not run.
    pub skipped: Vec<String>,
}

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
        write!(formatter, "; skipped: {}", self.skipped.join("; "))
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
    fn the_line_of_text_names_what_was_skipped() {
        let counts = Counts { passed: 12, failed: 3, skipped: Vec::new() };
        assert_eq!(counts.to_string(), "12 passed, 3 failed");
        let counts = counts.and(&Counts::skipped("control plane: no Go"));
        assert_eq!(counts.to_string(), "12 passed, 3 failed; skipped: control plane: no Go");
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
