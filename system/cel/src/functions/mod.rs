//! Operators and functions on values, one file per library. They do not overflow, and take steps in proportion to their
//! work.

pub(crate) mod convert;
mod format;
mod lists;
pub(crate) mod network;
mod operators;
mod optional;
mod quantities;
mod texts;
mod times;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::budget::Steps;
use crate::evaluation_error::EvaluationError;
use crate::pattern::Pattern;
use crate::value::Cel;

/// Result of an evaluation.
pub(crate) type EvaluationResult<'a> = Result<Cel<'a>, EvaluationError>;
/// Implementation of a function. It checks the number and types of its arguments.
pub(crate) type Implementation = for<'a> fn(&[Cel<'a>], &mut EvaluationContext) -> EvaluationResult<'a>;
/// Functions by name.
type Table = &'static [(&'static str, Implementation)];

/// Maximum number of cached patterns per evaluation.
const PATTERNS_MAX: usize = 32;

const TABLES: [Table; 9] = [
    operators::TABLE,
    convert::TABLE,
    texts::TABLE,
    format::TABLE,
    lists::TABLE,
    times::TABLE,
    optional::TABLE,
    quantities::TABLE,
    network::TABLE,
];

/// Finds a function by its name.
pub(crate) fn find(name: &str) -> Option<Implementation> {
    TABLES.iter().find_map(|table| table.iter().find(|(known, _)| *known == name)).map(|(_, function)| *function)
}

/// Returns the names of all functions.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter().map(|(name, _)| *name))
}

/// State of an evaluation: remaining steps and cached patterns.
pub(crate) struct EvaluationContext {
    pub steps: Steps,
    patterns: BTreeMap<String, Rc<Pattern>>,
}

impl EvaluationContext {
    pub fn new(steps: Steps) -> Self {
        Self { steps, patterns: BTreeMap::new() }
    }

    /// Compiles a pattern, or returns it from the cache.
    fn pattern(&mut self, text: &str) -> Result<Rc<Pattern>, EvaluationError> {
        self.steps.take(text.len())?;
        if let Some(known) = self.patterns.get(text) {
            return Ok(Rc::clone(known));
        }
        self.steps.take(text.len() * 8)?;
        let pattern = Pattern::for_rule(text)
            .map_err(|error| EvaluationError::with_redacted(error.to_string(), "error parsing regexp"))?;
        let pattern = Rc::new(pattern);
        if self.patterns.len() < PATTERNS_MAX {
            self.patterns.insert(text.to_owned(), Rc::clone(&pattern));
        }
        Ok(pattern)
    }
}

/// Converts a length to a CEL value.
fn length_value<'a>(length: usize) -> Cel<'a> {
    Cel::Int(i64::try_from(length).unwrap_or(i64::MAX))
}
