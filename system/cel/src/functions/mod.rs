//! Operators and functions on values: one file a library. None overflows, and every one costs as many steps as it works.

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
use crate::failure::Failure;
use crate::pattern::Pattern;
use crate::value::Cel;

/// A value, or why there is none.
pub(crate) type Outcome<'a> = Result<Cel<'a>, Failure>;
/// What computes a function from its arguments, whatever their number and their types.
pub(crate) type Implementation = for<'a> fn(&[Cel<'a>], &mut Tools) -> Outcome<'a>;
/// Functions by their names.
type Table = &'static [(&'static str, Implementation)];

/// The most patterns that an evaluation remembers.
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

/// The function with a name.
pub(crate) fn named(name: &str) -> Option<Implementation> {
    TABLES.iter().find_map(|table| table.iter().find(|(known, _)| *known == name)).map(|(_, function)| *function)
}

/// Every name.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().flat_map(|table| table.iter().map(|(name, _)| *name))
}

/// What functions work with besides their arguments.
pub(crate) struct Tools {
    pub steps: Steps,
    patterns: BTreeMap<String, Rc<Pattern>>,
}

impl Tools {
    pub fn new(steps: Steps) -> Self {
        Self { steps, patterns: BTreeMap::new() }
    }

    /// Reads a pattern, once in an evaluation.
    fn pattern(&mut self, text: &str) -> Result<Rc<Pattern>, Failure> {
        self.steps.take(text.len())?;
        if let Some(known) = self.patterns.get(text) {
            return Ok(Rc::clone(known));
        }
        self.steps.take(text.len() * 8)?;
        let pattern =
            Pattern::of_rule(text).map_err(|error| Failure::about(error.to_string(), "error parsing regexp"))?;
        let pattern = Rc::new(pattern);
        if self.patterns.len() < PATTERNS_MAX {
            self.patterns.insert(text.to_owned(), Rc::clone(&pattern));
        }
        Ok(pattern)
    }
}

/// A length as CEL counts it.
fn count<'a>(length: usize) -> Cel<'a> {
    Cel::Int(i64::try_from(length).unwrap_or(i64::MAX))
}
