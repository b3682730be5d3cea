//! Evaluation of a rule in a bounded number of steps.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::budget::Steps;
use crate::evaluation_error::EvaluationError;
use crate::functions::context::{EvaluationContext, EvaluationResult};
use crate::node::{Comprehension, Element, Entry, Node, NodeKind};
use crate::types::Type;
use crate::value::{Cel, Entries, Text};

/// Evaluates a rule.
pub(crate) fn evaluate<'a>(node: &'a Node, variables: &[(&str, Cel<'a>)]) -> EvaluationResult<'a> {
    Evaluator { variables, context: EvaluationContext::new(Steps::full()) }.evaluate(node, None)
}

/// Variables of the enclosing loops, the innermost first.
#[derive(Clone, Copy)]
struct Scope<'s, 'a> {
    name: &'s str,
    value: &'s Cel<'a>,
    outer: Option<&'s Scope<'s, 'a>>,
}

struct Evaluator<'v, 'a> {
    variables: &'v [(&'v str, Cel<'a>)],
    context: EvaluationContext,
}

/// Values of the one or two variables of a loop.
type Item<'a> = (Cel<'a>, Option<Cel<'a>>);

/// Items of a loop, with the names of its variables.
struct LoopItems<'n, 'a> {
    first: &'n str,
    second: Option<&'n str>,
    items: Vec<Item<'a>>,
}

impl<'a> Evaluator<'_, 'a> {
    fn evaluate(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> EvaluationResult<'a> {
        self.context.steps.take(1)?;
        match &node.kind {
            NodeKind::Null => Ok(Cel::Null),
            NodeKind::Bool(value) => Ok(Cel::Bool(*value)),
            NodeKind::Int(value) => Ok(Cel::Int(*value)),
            NodeKind::Uint(value) => Ok(Cel::Uint(*value)),
            NodeKind::Double(value) => Ok(Cel::Double(*value)),
            NodeKind::Text(value) => Ok(Cel::Text(Text::Borrowed(value))),
            NodeKind::Bytes(value) => Ok(Cel::Bytes(Rc::from(value.as_slice()))),
            NodeKind::Name(name) => self.resolve_name(name, scope),
            NodeKind::Message(name) => Err(EvaluationError::new(format!("unknown type: {name}"))),
            NodeKind::Field { of, name, is_optional } => {
                let of = self.evaluate(of, scope)?;
                read_field(&of, name, *is_optional)
            }
            NodeKind::Has { of, name } => {
                let of = self.evaluate(of, scope)?;
                has_field(&of, name).map(Cel::Bool)
            }
            NodeKind::List(elements) => self.evaluate_list(elements, scope),
            NodeKind::Map(entries) => self.evaluate_map(entries, scope),
            NodeKind::And(left, right) => self.evaluate_logical(left, right, false, scope),
            NodeKind::Or(left, right) => self.evaluate_logical(left, right, true, scope),
            NodeKind::If { condition, then, otherwise } => {
                let chosen = if self.evaluate_bool(condition, scope)? { then } else { otherwise };
                self.evaluate(chosen, scope)
            }
            NodeKind::Call { name, arguments, function, .. } => {
                let arguments: Vec<Cel<'a>> =
                    arguments.iter().map(|argument| self.evaluate(argument, scope)).collect::<Result<_, _>>()?;
                let function = function.ok_or_else(|| EvaluationError::new(format!("no such overload: {name}")))?;
                function(&arguments, &mut self.context)
            }
            NodeKind::Loop { over, first, second, comprehension } => {
                let over = self.evaluate(over, scope)?;
                let items = self.list_items(&over, second.is_some())?;
                let loop_items = LoopItems { first, second: second.as_deref(), items };
                self.evaluate_loop(&loop_items, comprehension, scope)
            }
            NodeKind::OptionalMap { of, variable, to, is_flat } => match self.evaluate(of, scope)? {
                Cel::Optional(None) => Ok(Cel::Optional(None)),
                Cel::Optional(Some(inner)) => {
                    let result = self.evaluate(to, Some(&Scope { name: variable, value: &inner, outer: scope }))?;
                    Ok(if *is_flat { result } else { Cel::some(result) })
                }
                _ => Err(EvaluationError::no_such_overload()),
            },
        }
    }

    fn resolve_name(&self, name: &str, mut scope: Option<&Scope<'_, 'a>>) -> EvaluationResult<'a> {
        while let Some(inner) = scope {
            if inner.name == name {
                return Ok(inner.value.clone());
            }
            scope = inner.outer;
        }
        if let Some((_, value)) = self.variables.iter().find(|(variable, _)| *variable == name) {
            return Ok(value.clone());
        }
        let type_name = Type::from_name(name).map(|_| crate::functions::convert::type_name(name));
        type_name.map(Cel::Type).ok_or_else(|| EvaluationError::new(format!("no such attribute(s): {name}")))
    }

    fn evaluate_bool(&mut self, node: &'a Node, scope: Option<&Scope<'_, 'a>>) -> Result<bool, EvaluationError> {
        match self.evaluate(node, scope)? {
            Cel::Bool(value) => Ok(value),
            _ => Err(EvaluationError::no_such_overload()),
        }
    }

    /// Evaluates a node to an optional value and returns its content.
    fn evaluate_optional(
        &mut self,
        node: &'a Node,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Option<Cel<'a>>, EvaluationError> {
        match self.evaluate(node, scope)? {
            Cel::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
            _ => Err(EvaluationError::new("cannot initialize optional entry from non-optional value")),
        }
    }

    fn evaluate_list(&mut self, elements: &'a [Element], scope: Option<&Scope<'_, 'a>>) -> EvaluationResult<'a> {
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            if element.is_optional {
                list.extend(self.evaluate_optional(&element.node, scope)?);
            } else {
                list.push(self.evaluate(&element.node, scope)?);
            }
        }
        Ok(Cel::list(list))
    }

    fn evaluate_map(&mut self, entries: &'a [Entry], scope: Option<&Scope<'_, 'a>>) -> EvaluationResult<'a> {
        let mut map = BTreeMap::new();
        for entry in entries {
            let Some(key) = self.evaluate(&entry.key, scope)?.to_key() else {
                return Err(EvaluationError::new("unsupported key type"));
            };
            let value = if entry.is_optional {
                self.evaluate_optional(&entry.value, scope)?
            } else {
                Some(self.evaluate(&entry.value, scope)?)
            };
            let Some(value) = value else { continue };
            if map.insert(key, value).is_some() {
                return Err(EvaluationError::new("insert failed: a key already exists"));
            }
        }
        Ok(Cel::Map(Entries::Owned(Rc::new(map))))
    }

    /// Evaluates `&&` and `||`. If one operand decides the result, an error of the other is ignored.
    fn evaluate_logical(
        &mut self,
        left: &'a Node,
        right: &'a Node,
        decides: bool,
        scope: Option<&Scope<'_, 'a>>,
    ) -> EvaluationResult<'a> {
        let left = self.evaluate_bool(left, scope);
        if left == Ok(decides) || left == Err(EvaluationError::BudgetExceeded) {
            return left.map(Cel::Bool);
        }
        match self.evaluate_bool(right, scope) {
            Ok(right) if right == decides => Ok(Cel::Bool(decides)),
            Err(EvaluationError::BudgetExceeded) => Err(EvaluationError::BudgetExceeded),
            right => left.and(right).map(Cel::Bool),
        }
    }

    /// Returns the items of a loop: elements of a list or keys of a map, with two variables also indexes or values.
    fn list_items(&mut self, over: &Cel<'a>, has_two_variables: bool) -> Result<Vec<Item<'a>>, EvaluationError> {
        match over {
            Cel::List(list) => {
                self.context.steps.take(list.len())?;
                let indexes = 0_i64..;
                let items = indexes.zip(list.iter());
                Ok(items
                    .map(|(index, item)| if has_two_variables { (Cel::Int(index), Some(item)) } else { (item, None) })
                    .collect())
            }
            Cel::Map(entries) => {
                self.context.steps.take(entries.len())?;
                let keys = entries.keys().into_iter();
                Ok(keys
                    .map(|key| {
                        let value = has_two_variables.then(|| entries.get(&key).unwrap_or(Cel::Null));
                        (key, value)
                    })
                    .collect())
            }
            other => Err(EvaluationError::new(format!("got '{}', expected iterable type", other.type_name()))),
        }
    }

    fn evaluate_loop(
        &mut self,
        loop_items: &LoopItems<'_, 'a>,
        comprehension: &'a Comprehension,
        scope: Option<&Scope<'_, 'a>>,
    ) -> EvaluationResult<'a> {
        match comprehension {
            Comprehension::All(test) => self.evaluate_quantifier(loop_items, test, false, scope),
            Comprehension::Exists(test) => self.evaluate_quantifier(loop_items, test, true, scope),
            Comprehension::ExistsOne(test) => {
                let found = self.filter_items(loop_items, Some(test), scope)?;
                Ok(Cel::Bool(found.len() == 1))
            }
            Comprehension::Filter(test) => {
                let chosen = self.filter_items(loop_items, Some(test), scope)?;
                Ok(Cel::list(chosen.into_iter().map(|(item, _)| item).collect()))
            }
            Comprehension::Map { filter, to } => {
                let chosen = self.filter_items(loop_items, filter.as_deref(), scope)?;
                let values = chosen.iter().map(|item| self.evaluate_for_item(loop_items, item, to, scope));
                values.collect::<Result<Vec<_>, _>>().map(Cel::list)
            }
            Comprehension::Transform { filter, to } => {
                let chosen = self.filter_items(loop_items, filter.as_deref(), scope)?;
                let mut map = BTreeMap::new();
                for item in &chosen {
                    let key = item.0.to_key().ok_or_else(|| EvaluationError::new("unsupported key type"))?;
                    map.insert(key, self.evaluate_for_item(loop_items, item, to, scope)?);
                }
                Ok(Cel::Map(Entries::Owned(Rc::new(map))))
            }
        }
    }

    /// Evaluates a part of a loop for one item.
    fn evaluate_for_item(
        &mut self,
        loop_items: &LoopItems<'_, 'a>,
        item: &Item<'a>,
        node: &'a Node,
        scope: Option<&Scope<'_, 'a>>,
    ) -> EvaluationResult<'a> {
        let first = Scope { name: loop_items.first, value: &item.0, outer: scope };
        match (loop_items.second, &item.1) {
            (Some(name), Some(value)) => self.evaluate(node, Some(&Scope { name, value, outer: Some(&first) })),
            (_, _) => self.evaluate(node, Some(&first)),
        }
    }

    fn test_item(
        &mut self,
        loop_items: &LoopItems<'_, 'a>,
        item: &Item<'a>,
        test: &'a Node,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<bool, EvaluationError> {
        match self.evaluate_for_item(loop_items, item, test, scope)? {
            Cel::Bool(value) => Ok(value),
            _ => Err(EvaluationError::no_such_overload()),
        }
    }

    /// Evaluates `all` or `exists`; an error counts only if no item decides.
    fn evaluate_quantifier(
        &mut self,
        loop_items: &LoopItems<'_, 'a>,
        test: &'a Node,
        decides: bool,
        scope: Option<&Scope<'_, 'a>>,
    ) -> EvaluationResult<'a> {
        let mut error = None;
        for item in &loop_items.items {
            match self.test_item(loop_items, item, test, scope) {
                Ok(result) if result == decides => return Ok(Cel::Bool(decides)),
                Ok(_) => {}
                Err(EvaluationError::BudgetExceeded) => return Err(EvaluationError::BudgetExceeded),
                Err(failure @ EvaluationError::Failed { .. }) => error = error.or(Some(failure)),
            }
        }
        error.map_or(Ok(Cel::Bool(!decides)), Err)
    }

    /// Returns the items for which the test is true; all without a test.
    fn filter_items(
        &mut self,
        loop_items: &LoopItems<'_, 'a>,
        test: Option<&'a Node>,
        scope: Option<&Scope<'_, 'a>>,
    ) -> Result<Vec<Item<'a>>, EvaluationError> {
        let Some(test) = test else { return Ok(loop_items.items.clone()) };
        let mut chosen = Vec::new();
        for item in &loop_items.items {
            if self.test_item(loop_items, item, test, scope)? {
                chosen.push(item.clone());
            }
        }
        Ok(chosen)
    }
}

/// Reads a field by its name in rules; the field of an optional value is optional too.
fn read_field<'a>(of: &Cel<'a>, name: &str, is_optional: bool) -> EvaluationResult<'a> {
    match of {
        Cel::Optional(None) => Ok(Cel::Optional(None)),
        Cel::Optional(Some(inner)) => read_field(inner, name, true),
        Cel::Map(entries) => match entries.field(name) {
            Some(value) if is_optional => Ok(Cel::some(value)),
            Some(value) => Ok(value),
            None if is_optional => Ok(Cel::Optional(None)),
            None => Err(EvaluationError::new(format!("no such key: {name}"))),
        },
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn has_field(of: &Cel<'_>, name: &str) -> Result<bool, EvaluationError> {
    match of {
        Cel::Optional(None) => Ok(false),
        Cel::Optional(Some(inner)) => has_field(inner, name),
        Cel::Map(entries) => Ok(entries.field(name).is_some()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}
