//! Evaluates a rule in a bounded number of steps.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::budget::Steps;
use crate::failure::Failure;
use crate::functions::{Outcome, Tools};
use crate::node::{Element, Entry, Kind, Node, Purpose};
use crate::types::Type;
use crate::value::{Cel, Entries, Text};

/// The value of a rule.
pub(crate) fn evaluate<'a>(node: &'a Node, variables: &[(&str, Cel<'a>)]) -> Outcome<'a> {
    Evaluator { variables, tools: Tools::new(Steps::all()) }.value(node, None)
}

/// The variables of the loops around a place, the innermost first.
#[derive(Clone, Copy)]
struct Scope<'s, 'a> {
    name: &'s str,
    value: &'s Cel<'a>,
    outer: Option<&'s Scope<'s, 'a>>,
}

struct Evaluator<'v, 'a> {
    variables: &'v [(&'v str, Cel<'a>)],
    tools: Tools,
}

/// An element of a loop: what its one or its two variables are.
type Item<'a> = (Cel<'a>, Option<Cel<'a>>);

/// What a loop walks over, with the names of its variables.
struct Walk<'n, 'a> {
    first: &'n str,
    second: Option<&'n str>,
    items: Vec<Item<'a>>,
}

impl<'a> Evaluator<'_, 'a> {
    fn value(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        self.tools.steps.take(1)?;
        match &node.kind {
            Kind::Null => Ok(Cel::Null),
            Kind::Bool(value) => Ok(Cel::Bool(*value)),
            Kind::Int(value) => Ok(Cel::Int(*value)),
            Kind::Uint(value) => Ok(Cel::Uint(*value)),
            Kind::Double(value) => Ok(Cel::Double(*value)),
            Kind::Text(value) => Ok(Cel::Text(Text::Lent(value))),
            Kind::Bytes(value) => Ok(Cel::Bytes(Rc::from(value.as_slice()))),
            Kind::Name(name) => self.name(name, scope),
            Kind::Message(name) => Err(Failure::wrong(format!("unknown type: {name}"))),
            Kind::Field { of, name, is_optional } => {
                let of = self.value(of, scope)?;
                field(&of, name, *is_optional)
            }
            Kind::Has { of, name } => {
                let of = self.value(of, scope)?;
                has(&of, name).map(Cel::Bool)
            }
            Kind::List(elements) => self.list(elements, scope),
            Kind::Map(entries) => self.map(entries, scope),
            Kind::And(left, right) => self.logical(left, right, false, scope),
            Kind::Or(left, right) => self.logical(left, right, true, scope),
            Kind::If { condition, then, otherwise } => {
                let chosen = if self.truth(condition, scope)? { then } else { otherwise };
                self.value(chosen, scope)
            }
            Kind::Call { name, arguments, function, .. } => {
                let arguments: Vec<Cel<'a>> =
                    arguments.iter().map(|argument| self.value(argument, scope)).collect::<Result<_, _>>()?;
                let function = function.ok_or_else(|| Failure::wrong(format!("no such overload: {name}")))?;
                function(&arguments, &mut self.tools)
            }
            Kind::Loop { over, first, second, purpose } => {
                let over = self.value(over, scope)?;
                let items = self.items(&over, second.is_some())?;
                let walk = Walk { first, second: second.as_deref(), items };
                self.around(&walk, purpose, scope)
            }
            Kind::Inside { of, variable, to, is_flat } => match self.value(of, scope)? {
                Cel::Optional(None) => Ok(Cel::Optional(None)),
                Cel::Optional(Some(inner)) => {
                    let result = self.value(to, Some(&Scope { name: variable, value: &inner, outer: scope }))?;
                    Ok(if *is_flat { result } else { Cel::some(result) })
                }
                _ => Err(Failure::no_such_overload()),
            },
        }
    }

    fn name(&self, name: &str, mut scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        while let Some(inner) = scope {
            if inner.name == name {
                return Ok(inner.value.clone());
            }
            scope = inner.outer;
        }
        if let Some((_, value)) = self.variables.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let named = Type::named(name).map(|_| crate::functions::convert::type_name(name));
        named.map(Cel::Type).ok_or_else(|| Failure::wrong(format!("no such attribute(s): {name}")))
    }

    fn truth(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> Result<bool, Failure> {
        match self.value(node, scope)? {
            Cel::Bool(value) => Ok(value),
            _ => Err(Failure::no_such_overload()),
        }
    }

    /// An optional value only if it is there.
    fn optional(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> Result<Option<Cel<'a>>, Failure> {
        match self.value(node, scope)? {
            Cel::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
            _ => Err(Failure::wrong("cannot initialize optional entry from non-optional value")),
        }
    }

    fn list(&mut self, elements: &'a [Element], scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            if element.is_optional {
                list.extend(self.optional(&element.node, scope)?);
            } else {
                list.push(self.value(&element.node, scope)?);
            }
        }
        Ok(Cel::list(list))
    }

    fn map(&mut self, entries: &'a [Entry], scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        let mut map = BTreeMap::new();
        for entry in entries {
            let Some(key) = self.value(&entry.key, scope)?.key() else {
                return Err(Failure::wrong("unsupported key type"));
            };
            let value = if entry.is_optional {
                self.optional(&entry.value, scope)?
            } else {
                Some(self.value(&entry.value, scope)?)
            };
            let Some(value) = value else { continue };
            if map.insert(key, value).is_some() {
                return Err(Failure::wrong("insert failed: a key already exists"));
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

    /// What a loop walks over: the elements of a list or the keys of a map; with two variables also their places or values.
    fn items(&mut self, over: &Cel<'a>, is_double: bool) -> Result<Vec<Item<'a>>, Failure> {
        match over {
            Cel::List(list) => {
                self.tools.steps.take(list.len())?;
                let places = 0_i64..;
                let items = places.zip(list.iter());
                Ok(items
                    .map(|(place, item)| if is_double { (Cel::Int(place), Some(item)) } else { (item, None) })
                    .collect())
            }
            Cel::Map(entries) => {
                self.tools.steps.take(entries.len())?;
                let keys = entries.keys().into_iter();
                Ok(keys
                    .map(|key| {
                        let value = is_double.then(|| entries.get(&key).unwrap_or(Cel::Null));
                        (key, value)
                    })
                    .collect())
            }
            other => Err(Failure::wrong(format!("got '{}', expected iterable type", other.kind()))),
        }
    }

    fn around(&mut self, walk: &Walk<'_, 'a>, purpose: &'a Purpose, scope: Option<&Scope<'_, 'a>>) -> Outcome<'a> {
        match purpose {
            Purpose::All(test) => self.search(walk, test, false, scope),
            Purpose::Exists(test) => self.search(walk, test, true, scope),
            Purpose::ExistsOne(test) => {
                let found = self.chosen(walk, Some(test), scope)?;
                Ok(Cel::Bool(found.len() == 1))
            }
            Purpose::Filter(test) => {
                let chosen = self.chosen(walk, Some(test), scope)?;
                Ok(Cel::list(chosen.into_iter().map(|(item, _)| item).collect()))
            }
            Purpose::Map { filter, to } => {
                let chosen = self.chosen(walk, filter.as_deref(), scope)?;
                let made = chosen.iter().map(|item| self.with(walk, item, to, scope));
                made.collect::<Result<Vec<_>, _>>().map(Cel::list)
            }
            Purpose::Transform { filter, to } => {
                let chosen = self.chosen(walk, filter.as_deref(), scope)?;
                let mut map = BTreeMap::new();
                for item in &chosen {
                    let key = item.0.key().ok_or_else(|| Failure::wrong("unsupported key type"))?;
                    map.insert(key, self.with(walk, item, to, scope)?);
                }
                Ok(Cel::Map(Entries::Made(Rc::new(map))))
            }
        }
    }

    /// The value of a part of a loop for one item.
    fn with(
        &mut self,
        walk: &Walk<'_, 'a>,
        item: &Item<'a>,
        node: &'a Node,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Outcome<'a> {
        let first = Scope { name: walk.first, value: &item.0, outer: scope };
        match (walk.second, &item.1) {
            (Some(name), Some(value)) => self.value(node, Some(&Scope { name, value, outer: Some(&first) })),
            (_, _) => self.value(node, Some(&first)),
        }
    }

    fn holds(
        &mut self,
        walk: &Walk<'_, 'a>,
        item: &Item<'a>,
        test: &'a Node,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<bool, Failure> {
        match self.with(walk, item, test, scope)? {
            Cel::Bool(value) => Ok(value),
            _ => Err(Failure::no_such_overload()),
        }
    }

    /// Whether some item decides; an error counts only if none does.
    fn search(
        &mut self,
        walk: &Walk<'_, 'a>,
        test: &'a Node,
        decides: bool,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Outcome<'a> {
        let mut error = None;
        for item in &walk.items {
            match self.holds(walk, item, test, scope) {
                Ok(truth) if truth == decides => return Ok(Cel::Bool(decides)),
                Ok(_) => {}
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(wrong @ Failure::Wrong { .. }) => error = error.or(Some(wrong)),
            }
        }
        error.map_or(Ok(Cel::Bool(!decides)), Err)
    }

    /// The items for which the test holds; all without a test.
    fn chosen(
        &mut self,
        walk: &Walk<'_, 'a>,
        test: Option<&'a Node>,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Vec<Item<'a>>, Failure> {
        let Some(test) = test else { return Ok(walk.items.clone()) };
        let mut chosen = Vec::new();
        for item in &walk.items {
            if self.holds(walk, item, test, scope)? {
                chosen.push(item.clone());
            }
        }
        Ok(chosen)
    }
}

/// A field by its name in the rule; of something optional it is optional too.
fn field<'a>(of: &Cel<'a>, name: &str, is_optional: bool) -> Outcome<'a> {
    match of {
        Cel::Optional(None) => Ok(Cel::Optional(None)),
        Cel::Optional(Some(inner)) => field(inner, name, true),
        Cel::Map(entries) => match entries.field(name) {
            Some(value) if is_optional => Ok(Cel::some(value)),
            Some(value) => Ok(value),
            None if is_optional => Ok(Cel::Optional(None)),
            None => Err(Failure::wrong(format!("no such key: {name}"))),
        },
        _ => Err(Failure::no_such_overload()),
    }
}

fn has(of: &Cel<'_>, name: &str) -> Result<bool, Failure> {
    match of {
        Cel::Optional(None) => Ok(false),
        Cel::Optional(Some(inner)) => has(inner, name),
        Cel::Map(entries) => Ok(entries.field(name).is_some()),
        _ => Err(Failure::no_such_overload()),
    }
}
