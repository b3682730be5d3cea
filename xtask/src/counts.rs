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

    /// Counts of a test command that ran in another process: its last line, as far as that fits its exit code.
    pub fn from_output(code: u8, output: &str) -> Self {
        let parsed = output.lines().next_back().and_then(Self::parse);
        match parsed {
            Some(counts) if (code == 0) == (counts.failed == 0) => counts,
            _ => Self::from_success(false),
        }
    }

    /// Parses the line of text.
    fn parse(line: &str) -> Option<Self> {
        let (numbers, skipped) = line.split_once("; skipped: ").map_or((line, None), |(line, rest)| (line, Some(rest)));
        let (passed, failed) = numbers.strip_suffix(" failed")?.split_once(" passed, ")?;
        let skipped = skipped.map(|reasons| reasons.split("; ").map(str::to_owned).collect()).unwrap_or_default();
        Some(Self { passed: passed.parse().ok()?, failed: failed.parse().ok()?, skipped })
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
    fn the_counts_of_another_process_are_those_of_its_last_line() {
        let counts = Counts { passed: 12, failed: 0, skipped: vec!["a".to_owned(), "b".to_owned()] };
        assert_eq!(Counts::from_output(0, &format!("=== tests\n3 passed, 1 failed\n{counts}\n")), counts);
        // A process that was killed has passed nothing.
        for (code, output) in [(137, "12 passed, 0 failed"), (0, "12 passed, 1 failed"), (0, "12 passed, 0"), (0, "")] {
            assert_eq!(Counts::from_output(code, output), Counts::from_success(false), "{output}");
        }
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
