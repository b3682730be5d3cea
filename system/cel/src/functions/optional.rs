//! Optional values.

use super::context::{EvaluationContext, EvaluationResult, Table};
use crate::evaluation_error::EvaluationError;
use crate::value::Cel;

pub(super) const TABLE: Table = &[
    ("optional.of", |arguments, _| one(arguments).map(|value| Cel::some(value.clone()))),
    ("optional.ofNonZeroValue", |arguments, _| {
        one(arguments).map(|value| if is_zero(value) { Cel::Optional(None) } else { Cel::some(value.clone()) })
    }),
    ("optional.none", |_, _| Ok(Cel::Optional(None))),
    ("optional.unwrap", unwrap),
    ("unwrapOpt", unwrap),
    ("value", value),
    ("hasValue", has_value),
    ("or", or),
    ("orValue", or_value),
];

fn one<'l, 'a>(arguments: &'l [Cel<'a>]) -> Result<&'l Cel<'a>, EvaluationError> {
    match arguments {
        [value] => Ok(value),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Returns true if a value is the zero value of its type.
fn is_zero(value: &Cel<'_>) -> bool {
    match value {
        Cel::Null | Cel::Optional(None) => true,
        Cel::Bool(value) => !value,
        Cel::Int(value) | Cel::Duration(value) => *value == 0,
        Cel::Uint(value) => *value == 0,
        Cel::Double(value) => *value == 0.0,
        Cel::Text(text) => text.is_empty(),
        Cel::Bytes(bytes) => bytes.is_empty(),
        Cel::List(list) => list.len() == 0,
        Cel::Map(entries) => entries.len() == 0,
        _ => false,
    }
}

fn unwrap<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let Cel::List(list) = one(arguments)? else { return Err(EvaluationError::no_such_overload()) };
    context.steps.take(list.len())?;
    let inner = list.iter().filter_map(|element| match element {
        Cel::Optional(inner) => inner.map(|inner| (*inner).clone()),
        other => Some(other),
    });
    Ok(Cel::list(inner.collect()))
}

fn value<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match one(arguments)? {
        Cel::Optional(Some(inner)) => Ok((**inner).clone()),
        Cel::Optional(None) => Err(EvaluationError::new("optional.none() dereference")),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn has_value<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match one(arguments)? {
        Cel::Optional(inner) => Ok(Cel::Bool(inner.is_some())),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn or<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [first @ Cel::Optional(Some(_)), Cel::Optional(_)] => Ok(first.clone()),
        [Cel::Optional(None), second @ Cel::Optional(_)] => Ok(second.clone()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn or_value<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Optional(Some(inner)), _] => Ok((**inner).clone()),
        [Cel::Optional(None), other] => Ok(other.clone()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}
