//! Differences that do not surprise: waivers, which are meant, and known differences, which are not there yet.
//!
//! A line of either file names an exchange and a step. A line that no longer applies is an error: nothing stays excused
//! longer than it must be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::exchange::Outcome;
use crate::generated::waiver::{WORD as GENERATED, Waiver};

/// Where the differences are that are meant.
pub const WAIVERS: &str = "conformance/fidelity/waivers";
/// Where the steps are that still differ.
pub const KNOWN: &str = "conformance/fidelity/known-differences";

/// An exchange and one of its steps, from 1.
pub type Place = (String, usize);

/// Both lists, each place with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// What is meant, and why.
    pub waivers: BTreeMap<Place, String>,
    /// What still differs.
    pub known: BTreeMap<Place, String>,
    /// What is meant in generated sequences.
    pub generated: Vec<Waiver>,
}

/// A list that cannot be used.
#[derive(Debug, Error)]
pub enum ExpectedError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A line that is not `EXCHANGE STEP REASON`.
    #[error("{}, line {line}: a line is an exchange, the number of a step{}", path.display(), if *reason { ", and the reason" } else { "" })]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Whether a reason is asked for.
        reason: bool,
    },
}

/// How what was found compares with what was expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Differences that nobody expected.
    pub new: Vec<Place>,
    /// Differences that still are.
    pub known: usize,
    /// Differences that are meant.
    pub waived: usize,
    /// Lines of the waivers that no longer apply.
    pub idle_waivers: Vec<Place>,
    /// Lines of the known differences that no longer apply.
    pub mended: Vec<Place>,
}

impl Verdict {
    /// Whether everything is as expected.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.new.is_empty() && self.idle_waivers.is_empty() && self.mended.is_empty()
    }
}

impl Expected {
    /// Reads both lists of the project.
    ///
    /// # Errors
    /// When a file is missing or has a line that makes no sense.
    pub fn read(root: &Path) -> Result<Self, ExpectedError> {
        let (waivers, known) = (root.join(WAIVERS), root.join(KNOWN));
        Ok(Self { waivers: list(&waivers, true)?, known: list(&known, false)?, generated: generated(&waivers)? })
    }

    /// Compares with what was found. Only exchanges that were played can leave a line without effect.
    #[must_use]
    pub fn judge(&self, outcomes: &[Outcome]) -> Verdict {
        let mut verdict = Verdict::default();
        for outcome in outcomes {
            for difference in &outcome.differences {
                let place = (outcome.name.clone(), difference.step);
                if self.waivers.contains_key(&place) {
                    verdict.waived += 1;
                } else if self.known.contains_key(&place) {
                    verdict.known += 1;
                } else {
                    verdict.new.push(place);
                }
            }
        }
        verdict.idle_waivers = without_effect(&self.waivers, outcomes);
        verdict.mended = without_effect(&self.known, outcomes);
        verdict
    }
}

fn without_effect(listed: &BTreeMap<Place, String>, outcomes: &[Outcome]) -> Vec<Place> {
    let idle = |(name, step): &&Place| {
        let played = outcomes.iter().find(|outcome| outcome.name == *name);
        played.is_some_and(|outcome| !outcome.differences.iter().any(|difference| difference.step == *step))
    };
    listed.keys().filter(idle).cloned().collect()
}

/// The lines that say something, each with its number from 0.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

fn generated(path: &Path) -> Result<Vec<Waiver>, ExpectedError> {
    let unreadable = |error| ExpectedError::Unreadable { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let waiver = |(index, line): (usize, &str)| {
        let rest = line.strip_prefix(GENERATED)?;
        let wrong = || ExpectedError::Line { path: path.to_owned(), line: index + 1, reason: true };
        Some(Waiver::parse(rest).ok_or_else(wrong))
    };
    lines(&text).filter_map(waiver).collect()
}

fn list(path: &Path, reason: bool) -> Result<BTreeMap<Place, String>, ExpectedError> {
    let unreadable = |error| ExpectedError::Unreadable { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let mut places = BTreeMap::new();
    for (index, line) in lines(&text).filter(|(_, line)| !line.starts_with(GENERATED)) {
        let wrong = || ExpectedError::Line { path: path.to_owned(), line: index + 1, reason };
        let mut words = line.splitn(3, ' ');
        let (name, step) = (words.next().ok_or_else(wrong)?, words.next().ok_or_else(wrong)?);
        let why = words.next().unwrap_or_default().trim().to_owned();
        if reason && why.is_empty() {
            return Err(wrong());
        }
        places.insert((name.to_owned(), step.parse().map_err(|_| wrong())?), why);
    }
    Ok(places)
}

/// The known differences as they are written down: one line for each step, with what it is about.
#[must_use]
pub fn written(expected: &Expected, outcomes: &[Outcome]) -> String {
    let mut text = "# Steps at which the simulated server still differs: exchange, step, what it is about.\n\
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

    fn outcome(name: &str, steps: &[usize]) -> Outcome {
        let difference = |step: &usize| Difference {
            step: *step,
            about: "x".to_owned(),
            request: Value::Null,
            real: Value::Null,
            simulated: Value::Null,
        };
        Outcome { name: name.to_owned(), steps: 9, differences: steps.iter().map(difference).collect() }
    }

    fn places(places: &[(&str, usize)]) -> BTreeMap<Place, String> {
        places.iter().map(|(name, step)| (((*name).to_owned(), *step), "why".to_owned())).collect()
    }

    #[test]
    fn a_difference_that_nobody_expected_and_one_that_is_no_more_are_both_told() {
        let expected = Expected {
            waivers: places(&[("a", 1), ("a", 2)]),
            known: places(&[("a", 3), ("a", 4), ("b", 1)]),
            ..Expected::default()
        };
        let verdict = expected.judge(&[outcome("a", &[1, 3, 5])]);
        assert_eq!(verdict.new, [("a".to_owned(), 5)]);
        assert_eq!((verdict.waived, verdict.known), (1, 1));
        assert_eq!(verdict.idle_waivers, [("a".to_owned(), 2)]);
        // b was not played, so that nothing is known about it.
        assert_eq!(verdict.mended, [("a".to_owned(), 4)]);
        assert!(!verdict.holds());
    }

    #[test]
    fn what_is_written_is_what_is_expected_next_time() {
        let outcomes = [outcome("a", &[1, 3])];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known");
        std::fs::write(&path, written(&Expected::default(), &outcomes)).unwrap();
        let expected = Expected { known: list(&path, false).unwrap(), ..Expected::default() };
        assert!(expected.judge(&outcomes).holds());
    }

    #[test]
    fn a_waiver_needs_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("waivers");
        std::fs::write(&path, "# why\na 1\n").unwrap();
        assert!(matches!(list(&path, true), Err(ExpectedError::Line { line: 2, .. })));
        std::fs::write(&path, "a 1 because\n").unwrap();
        assert_eq!(list(&path, true).unwrap(), BTreeMap::from([(("a".to_owned(), 1), "because".to_owned())]));
    }
}
