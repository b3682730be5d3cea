//! Types that all functions share: what they get, and what they return.

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
pub(super) type Table = &'static [(&'static str, Implementation)];

/// Maximum number of cached patterns per evaluation.
const PATTERNS_MAX: usize = 32;

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
    pub(super) fn pattern(&mut self, text: &str) -> Result<Rc<Pattern>, EvaluationError> {
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
pub(super) fn length_value<'a>(length: usize) -> Cel<'a> {
    Cel::Int(i64::try_from(length).unwrap_or(i64::MAX))
}
