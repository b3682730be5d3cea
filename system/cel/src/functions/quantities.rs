//! Functions on quantities.

use super::context::{EvaluationResult, Table};
use crate::evaluation_error::EvaluationError;
use crate::quantity::{MALFORMED, Quantity};
use crate::value::Cel;

pub(super) const TABLE: Table = &[
    ("quantity", |arguments, _| match arguments {
        [Cel::Text(text)] => Quantity::parse(text).map(Cel::Quantity).ok_or_else(|| EvaluationError::new(MALFORMED)),
        _ => Err(EvaluationError::no_such_overload()),
    }),
    ("isQuantity", |arguments, _| match arguments {
        [Cel::Text(text)] => Ok(Cel::Bool(Quantity::parse(text).is_some())),
        _ => Err(EvaluationError::no_such_overload()),
    }),
    ("sign", |arguments, _| one(arguments, |amount| Ok(Cel::Int(amount.signum())))),
    ("isGreaterThan", |arguments, _| two(arguments, |left, right| Cel::Bool(left > right))),
    ("isLessThan", |arguments, _| two(arguments, |left, right| Cel::Bool(left < right))),
    ("compareTo", |arguments, _| two(arguments, |left, right| Cel::Int(left.cmp(&right) as i64))),
    ("asApproximateFloat", |arguments, _| one(arguments, |amount| Ok(Cel::Double(amount.approximate())))),
    ("asInteger", |arguments, _| {
        one(arguments, |amount| {
            amount.whole().map(Cel::Int).ok_or_else(|| EvaluationError::new("cannot convert value to integer"))
        })
    }),
    ("isInteger", |arguments, _| one(arguments, |amount| Ok(Cel::Bool(amount.whole().is_some())))),
    ("add", |arguments, _| two(arguments, |left, right| Cel::Quantity(left.plus(right)))),
    ("sub", |arguments, _| two(arguments, |left, right| Cel::Quantity(left.minus(right)))),
];

fn one<'a>(arguments: &[Cel<'a>], of: fn(Quantity) -> EvaluationResult<'static>) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Quantity(amount)] => of(*amount),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn two<'a>(arguments: &[Cel<'a>], of: fn(Quantity, Quantity) -> Cel<'static>) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Quantity(left), Cel::Quantity(right)] => Ok(of(*left, *right)),
        [Cel::Quantity(left), Cel::Int(right)] => Ok(of(*left, Quantity::of(*right))),
        _ => Err(EvaluationError::no_such_overload()),
    }
}
