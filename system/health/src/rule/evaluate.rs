//! Evaluates a rule in a bounded number of steps: each part of the rule is one whenever it is evaluated, and whatever is
//! compared, walked or made costs as many more as it is long.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use thiserror::Error;

use super::functions::call;
use super::node::{Node, Purpose};
use super::value::{Cel, Entries};

/// The most steps.
pub(super) const STEPS_MAX: usize = 100_000;
/// So many bytes are read in one step.
const BYTES_A_STEP: usize = 16;

/// Why a rule has no value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum Failure {
    /// An error of the expression; another operand of `&&` or `||` may make up for it.
    #[error("{0}")]
    Wrong(String),
    /// The steps are used up, and nothing makes up for that.
    #[error("it takes too many steps")]
    Exhausted,
}

impl Failure {
    pub fn wrong(words: impl Into<String>) -> Self {
        Self::Wrong(words.into())
    }
}

/// The value of a rule for an object.
pub(super) fn evaluate<'a>(node: &'a Node, object: &'a Value) -> Result<Cel<'a>, Failure> {
    Evaluator { object, steps: Steps(STEPS_MAX) }.value(node, None)
}

/// The steps that are left.
pub(super) struct Steps(usize);

impl Steps {
    pub fn take(&mut self, steps: usize) -> Result<(), Failure> {
        self.0 = self.0.checked_sub(steps).ok_or(Failure::Exhausted)?;
        Ok(())
    }

    /// For looking at so many bytes.
    pub fn read(&mut self, bytes: usize) -> Result<(), Failure> {
        self.take(bytes / BYTES_A_STEP)
    }
}

/// The variables of the loops around a place, the innermost first.
#[derive(Clone, Copy)]
struct Scope<'s, 'a> {
    name: &'s str,
    value: &'s Cel<'a>,
    outer: Option<&'s Scope<'s, 'a>>,
}

struct Evaluator<'a> {
    object: &'a Value,
    steps: Steps,
}

type Outcome<'a> = Result<Cel<'a>, Failure>;

impl<'a> Evaluator<'a> {
    fn value(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        self.steps.take(1)?;
        match node {
            Node::Null => Ok(Cel::Null),
            Node::Bool(value) => Ok(Cel::Bool(*value)),
            Node::Int(value) => Ok(Cel::Int(*value)),
            Node::Uint(value) => Ok(Cel::Uint(*value)),
            Node::Double(value) => Ok(Cel::Double(*value)),
            Node::Text(value) => Ok(Cel::text(Rc::clone(value))),
            Node::Object => Ok(Cel::of(self.object)),
            Node::Variable(name) => variable(name, scope),
            Node::Field { of, name } => {
                let entries = self.entries(of, name, scope)?;
                entries.get(name).ok_or_else(|| Failure::wrong(format!("there is no field {name}")))
            }
            Node::Has { of, name } => Ok(Cel::Bool(self.entries(of, name, scope)?.get(name).is_some())),
            Node::List(elements) => self.values(elements, scope).map(Cel::list),
            Node::Map(entries) => self.map(entries, scope),
            Node::And(left, right) => self.logical(left, right, false, scope),
            Node::Or(left, right) => self.logical(left, right, true, scope),
            Node::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition, scope)? { then } else { otherwise };
                self.value(chosen, scope)
            }
            Node::Call { function, arguments } => {
                let arguments = self.values(arguments, scope)?;
                call(*function, &arguments, &mut self.steps)
            }
            Node::Loop { over, variable, purpose } => self.around(over, variable, purpose, scope),
        }
    }

    fn values(&mut self, nodes: &'a [Node], scope: Option<&Scope<'_, 'a>>) -> Result<Vec<Cel<'a>>, Failure> {
        nodes.iter().map(|node| self.value(node, scope)).collect()
    }

    fn truth(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> Result<bool, Failure> {
        match self.value(node, scope)? {
            Cel::Bool(value) => Ok(value),
            other => Err(Failure::wrong(format!("{} stands where true or false is needed", other.kind()))),
        }
    }

    /// The map of which a field is asked.
    fn entries(&mut self, of: &'a Node, name: &str, scope: Option<&Scope<'_, 'a>>) -> Result<Entries<'a>, Failure> {
        match self.value(of, scope)? {
            Cel::Map(entries) => Ok(entries),
            other => Err(Failure::wrong(format!("{} has no field {name}", other.kind()))),
        }
    }

    fn map(&mut self, entries: &'a [(Node, Node)], scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            let Cel::Text(key) = self.value(key, scope)? else {
                return Err(Failure::wrong("the keys of a map are strings"));
            };
            self.steps.take(key.len())?;
            if map.insert(key.to_string(), self.value(value, scope)?).is_some() {
                return Err(Failure::wrong("a map has a key twice"));
            }
        }
        Ok(Cel::Map(Entries::Made(Rc::new(map))))
    }

    /// `&&` and `||`: an operand that decides makes up for an error of the other.
    fn logical(
        &mut self,
        left: &'a Node,
        right: &'a Node,
        decides: bool,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Outcome<'a> {
        let left = self.truth(left, scope);
        if left == Ok(decides) || left == Err(Failure::Exhausted) {
            return left.map(Cel::Bool);
        }
        match self.truth(right, scope) {
            Ok(right) if right == decides => Ok(Cel::Bool(decides)),
            Err(Failure::Exhausted) => Err(Failure::Exhausted),
            right => left.and(right).map(Cel::Bool),
        }
    }

    /// A loop over the elements of a list or the keys of a map.
    fn around(
        &mut self,
        over: &'a Node,
        name: &str,
        purpose: &'a Purpose,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Outcome<'a> {
        let items: Vec<Cel<'a>> = match self.value(over, scope)? {
            Cel::List(list) => {
                self.steps.take(list.len())?;
                list.iter().collect()
            }
            Cel::Map(entries) => {
                self.steps.take(entries.len())?;
                entries.names()
            }
            other => return Err(Failure::wrong(format!("{} is neither a list nor a map", other.kind()))),
        };
        match purpose {
            Purpose::All(test) => self.search(&items, name, test, false, scope),
            Purpose::Exists(test) => self.search(&items, name, test, true, scope),
            Purpose::ExistsOne(test) => {
                let found = self.chosen(items, name, Some(test), scope)?;
                Ok(Cel::Bool(found.len() == 1))
            }
            Purpose::Filter(test) => self.chosen(items, name, Some(test), scope).map(Cel::list),
            Purpose::Map { filter, to } => {
                let chosen = self.chosen(items, name, filter.as_deref(), scope)?;
                let made = chosen.iter().map(|value| self.value(to, Some(&Scope { name, value, outer: scope })));
                made.collect::<Result<Vec<_>, _>>().map(Cel::list)
            }
        }
    }

    /// Whether some item decides; an error counts only if none does.
    fn search(
        &mut self,
        items: &[Cel<'a>],
        name: &str,
        test: &'a Node,
        decides: bool,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Outcome<'a> {
        let mut error = None;
        for value in items {
            match self.truth(test, Some(&Scope { name, value, outer: scope })) {
                Ok(truth) if truth == decides => return Ok(Cel::Bool(decides)),
                Ok(_) => {}
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(wrong @ Failure::Wrong(_)) => error = error.or(Some(wrong)),
            }
        }
        error.map_or(Ok(Cel::Bool(!decides)), Err)
    }

    /// The items for which the test holds; all without a test.
    fn chosen(
        &mut self,
        items: Vec<Cel<'a>>,
        name: &str,
        test: Option<&'a Node>,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Vec<Cel<'a>>, Failure> {
        let Some(test) = test else { return Ok(items) };
        let mut chosen = Vec::new();
        for value in items {
            if self.truth(test, Some(&Scope { name, value: &value, outer: scope }))? {
                chosen.push(value);
            }
        }
        Ok(chosen)
    }
}

fn variable<'a>(name: &str, mut scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
    while let Some(inner) = scope {
        if inner.name == name {
            return Ok(inner.value.clone());
        }
        scope = inner.outer;
    }
    // The reader lets no other name through.
    Err(Failure::wrong(format!("nothing is called {name}")))
}
