//! Expected differences: waivers of intended ones, and known differences that are not fixed yet.
//!
//! A line of either file names an exchange and a step. A line that no longer applies is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::exchange::ExchangeResult;
use crate::generated::waiver::{PREFIX as GENERATED, Waiver};

/// File with the waivers.
pub const WAIVERS: &str = "conformance/fidelity/waivers";
/// File with the known differences.
pub const KNOWN: &str = "conformance/fidelity/known-differences";

/// Name of an exchange and the number of a step, from 1.
pub type StepId = (String, usize);

/// Both lists, each step with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Intended differences.
    pub waivers: BTreeMap<StepId, String>,
    /// Known differences.
    pub known: BTreeMap<StepId, String>,
    /// Intended differences of generated sequences.
    pub generated: Vec<Waiver>,
}

/// An invalid list.
#[derive(Debug, Error)]
pub enum ExpectedError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A line that is not `EXCHANGE STEP REASON`.
    #[error("{}, line {line}: a line is an exchange, the number of a step{}", path.display(), if *reason { ", and the reason" } else { "" })]
    Line {
        /// Path.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// True if a reason is required.
        reason: bool,
    },
}

/// Comparison of the differences with the expected ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Unexpected differences.
    pub new: Vec<StepId>,
    /// Number of known differences.
    pub known: usize,
    /// Number of waived differences.
    pub waived: usize,
    /// Waivers that no longer apply.
    pub unused_waivers: Vec<StepId>,
    /// Known differences that no longer occur.
    pub fixed: Vec<StepId>,
}

impl Verdict {
    /// Returns true if everything is as expected.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.new.is_empty() && self.unused_waivers.is_empty() && self.fixed.is_empty()
    }
}

impl Expected {
    /// Reads both lists of the project.
    ///
    /// # Errors
    /// If a file is missing or has an invalid line.
    pub fn read(root: &Path) -> Result<Self, ExpectedError> {
        let (waivers, known) = (root.join(WAIVERS), root.join(KNOWN));
        Ok(Self {
            waivers: read_steps(&waivers, true)?,
            known: read_steps(&known, false)?,
            generated: read_generated(&waivers)?,
        })
    }

    /// Compares the expected differences with those of a run. Only lines of exchanges that were run can be unused.
    #[must_use]
    pub fn judge(&self, outcomes: &[ExchangeResult]) -> Verdict {
        let mut verdict = Verdict::default();
        for outcome in outcomes {
            for difference in &outcome.differences {
                let step = (outcome.name.clone(), difference.step);
                if self.waivers.contains_key(&step) {
                    verdict.waived += 1;
                } else if self.known.contains_key(&step) {
                    verdict.known += 1;
                } else {
                    verdict.new.push(step);
                }
            }
        }
        verdict.unused_waivers = unused_lines(&self.waivers, outcomes);
        verdict.fixed = unused_lines(&self.known, outcomes);
        verdict
    }
}

fn unused_lines(listed: &BTreeMap<StepId, String>, outcomes: &[ExchangeResult]) -> Vec<StepId> {
    let is_unused = |(name, step): &&StepId| {
        let result = outcomes.iter().find(|outcome| outcome.name == *name);
        result.is_some_and(|outcome| !outcome.differences.iter().any(|difference| difference.step == *step))
    };
    listed.keys().filter(is_unused).cloned().collect()
}

/// Returns the lines that are neither empty nor comments, with their numbers from 0.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

fn read_generated(path: &Path) -> Result<Vec<Waiver>, ExpectedError> {
    let unreadable = |error| ExpectedError::Unreadable { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let waiver = |(index, line): (usize, &str)| {
        let rest = line.strip_prefix(GENERATED)?;
        let wrong = || ExpectedError::Line { path: path.to_owned(), line: index + 1, reason: true };
        Some(Waiver::parse(rest).ok_or_else(wrong))
    };
    lines(&text).filter_map(waiver).collect()
}

fn read_steps(path: &Path, reason: bool) -> Result<BTreeMap<StepId, String>, ExpectedError> {
    let unreadable = |error| ExpectedError::Unreadable { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let mut steps = BTreeMap::new();
    for (index, line) in lines(&text).filter(|(_, line)| !line.starts_with(GENERATED)) {
        let wrong = || ExpectedError::Line { path: path.to_owned(), line: index + 1, reason };
        let mut words = line.splitn(3, ' ');
        let (name, step) = (words.next().ok_or_else(wrong)?, words.next().ok_or_else(wrong)?);
        let why = words.next().unwrap_or_default().trim().to_owned();
        if reason && why.is_empty() {
            return Err(wrong());
        }
        steps.insert((name.to_owned(), step.parse().map_err(|_| wrong())?), why);
    }
    Ok(steps)
}

/// Formats the list of known differences: one line for each step, with its description.
#[must_use]
pub fn format_known(expected: &Expected, outcomes: &[ExchangeResult]) -> String {
    let mut text = "# Steps at which the simulated server still differs: exchange, step, description.\n\
                    # `cargo xtask fidelity --update` writes this file; a run fails when it is not exact.\n"
        .to_owned();
    for outcome in outcomes {
        for difference in &outcome.differences {
            if !expected.waivers.contains_key(&(outcome.name.clone(), difference.step)) {
                text.push_str(&format!("{} {} {}\n", outcome.name, difference.step, difference.about));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Difference;
    use serde_json::Value;

    fn outcome(name: &str, steps: &[usize]) -> ExchangeResult {
        let difference = |step: &usize| Difference {
            step: *step,
            about: "x".to_owned(),
            request: Value::Null,
            real: Value::Null,
            simulated: Value::Null,
        };
        ExchangeResult { name: name.to_owned(), steps: 9, differences: steps.iter().map(difference).collect() }
    }

    fn steps(steps: &[(&str, usize)]) -> BTreeMap<StepId, String> {
        steps.iter().map(|(name, step)| (((*name).to_owned(), *step), "why".to_owned())).collect()
    }

    #[test]
    fn unexpected_differences_and_unused_lines_are_both_reported() {
        let expected = Expected {
            waivers: steps(&[("a", 1), ("a", 2)]),
            known: steps(&[("a", 3), ("a", 4), ("b", 1)]),
            ..Expected::default()
        };
        let verdict = expected.judge(&[outcome("a", &[1, 3, 5])]);
        assert_eq!(verdict.new, [("a".to_owned(), 5)]);
        assert_eq!((verdict.waived, verdict.known), (1, 1));
        assert_eq!(verdict.unused_waivers, [("a".to_owned(), 2)]);
        // b was not run.
        assert_eq!(verdict.fixed, [("a".to_owned(), 4)]);
        assert!(!verdict.is_as_expected());
    }

    #[test]
    fn the_written_list_is_expected_in_the_next_run() {
        let outcomes = [outcome("a", &[1, 3])];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known");
        std::fs::write(&path, format_known(&Expected::default(), &outcomes)).unwrap();
        let expected = Expected { known: read_steps(&path, false).unwrap(), ..Expected::default() };
        assert!(expected.judge(&outcomes).is_as_expected());
    }

    #[test]
    fn a_waiver_needs_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("waivers");
        std::fs::write(&path, "# why\na 1\n").unwrap();
        assert!(matches!(read_steps(&path, true), Err(ExpectedError::Line { line: 2, .. })));
        std::fs::write(&path, "a 1 because\n").unwrap();
        assert_eq!(read_steps(&path, true).unwrap(), BTreeMap::from([(("a".to_owned(), 1), "because".to_owned())]));
    }
}
