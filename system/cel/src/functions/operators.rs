//! Arithmetic, comparison, membership and size.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value;

use super::context::{EvaluationContext, EvaluationResult, Table, length_value};
use crate::budget::Steps;
use crate::evaluation_error::EvaluationError;
use crate::number::compare_double_with_integer;
use crate::shape::ListKind;
use crate::time;
use crate::value::{Cel, Entries, List};

/// Maximum nesting of compared values.
const DEPTH_MAX: usize = 128;

pub(super) const TABLE: Table = &[
    ("!_", not),
    ("-_", negate),
    ("_+_", add),
    ("_-_", subtract),
    ("_*_", multiply),
    ("_/_", divide),
    ("_%_", remainder),
    ("_==_", |arguments, context| both(arguments, context, |left, right, steps| equal(left, right, 0, steps))),
    ("_!=_", |arguments, context| both(arguments, context, |left, right, steps| Ok(!equal(left, right, 0, steps)?))),
    ("_<_", |arguments, context| both(arguments, context, |left, right, steps| Ok(order(left, right, steps)?.is_lt()))),
    ("_<=_", |arguments, context| {
        both(arguments, context, |left, right, steps| Ok(order(left, right, steps)?.is_le()))
    }),
    ("_>_", |arguments, context| both(arguments, context, |left, right, steps| Ok(order(left, right, steps)?.is_gt()))),
    ("_>=_", |arguments, context| {
        both(arguments, context, |left, right, steps| Ok(order(left, right, steps)?.is_ge()))
    }),
    ("@in", |arguments, context| both(arguments, context, contained)),
    ("_[_]", index),
    ("_[?_]", optional_index),
    ("size", size),
];

fn both<'a>(
    arguments: &[Cel<'a>],
    context: &mut EvaluationContext,
    holds: fn(&Cel<'a>, &Cel<'a>, &mut Steps) -> Result<bool, EvaluationError>,
) -> EvaluationResult<'a> {
    match arguments {
        [left, right] => holds(left, right, &mut context.steps).map(Cel::Bool),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn not<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Bool(value)] => Ok(Cel::Bool(!value)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn int_overflow() -> EvaluationError {
    EvaluationError::new("integer overflow")
}

fn uint_overflow() -> EvaluationError {
    EvaluationError::new("unsigned integer overflow")
}

fn duration_overflow() -> EvaluationError {
    EvaluationError::new("duration overflow")
}

fn timestamp_overflow() -> EvaluationError {
    EvaluationError::new("timestamp overflow")
}

fn negate<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Int(value)] => value.checked_neg().map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Double(value)] => Ok(Cel::Double(-value)),
        [Cel::Duration(value)] => value.checked_neg().map(Cel::Duration).ok_or_else(duration_overflow),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn add<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Text(left), Cel::Text(right)] => {
            context.steps.take(left.len() + right.len())?;
            Ok(Cel::text(format!("{}{}", &**left, &**right)))
        }
        [Cel::Bytes(left), Cel::Bytes(right)] => {
            context.steps.take(left.len() + right.len())?;
            Ok(Cel::Bytes(Rc::from([&**left, &**right].concat())))
        }
        [Cel::List(left), Cel::List(right)] => joined(left, right, &mut context.steps),
        [left, right] => sum(left, right),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Adds numbers, timestamps and durations.
pub(super) fn sum<'a>(left: &Cel<'a>, right: &Cel<'a>) -> EvaluationResult<'a> {
    match (left, right) {
        (Cel::Int(left), Cel::Int(right)) => left.checked_add(*right).map(Cel::Int).ok_or_else(int_overflow),
        (Cel::Uint(left), Cel::Uint(right)) => left.checked_add(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        (Cel::Double(left), Cel::Double(right)) => Ok(Cel::Double(left + right)),
        (Cel::Duration(left), Cel::Duration(right)) => {
            left.checked_add(*right).map(Cel::Duration).ok_or_else(duration_overflow)
        }
        (Cel::Timestamp(start), Cel::Duration(nanos)) | (Cel::Duration(nanos), Cel::Timestamp(start)) => {
            time::plus(*start, *nanos).map(Cel::Timestamp).ok_or_else(timestamp_overflow)
        }
        (_, _) => Err(EvaluationError::no_such_overload()),
    }
}

/// Concatenates two lists. A set adds only new elements; a list with map keys replaces elements with the same keys.
fn joined<'a>(left: &List<'a>, right: &List<'a>, steps: &mut Steps) -> EvaluationResult<'a> {
    steps.take(left.len() + right.len())?;
    let mut elements: Vec<Cel<'a>> = left.iter().collect();
    for element in right.iter() {
        let same = match left.kind() {
            None | Some(ListKind::Atomic) => None,
            Some(kind) => position(&elements, &element, kind, steps)?,
        };
        match (same, left.kind()) {
            (Some(at), Some(ListKind::Map(_))) => elements[at] = element,
            (Some(_), _) => {}
            (None, _) => elements.push(element),
        }
    }
    Ok(Cel::List(List::Owned(elements.into(), left.kind())))
}

/// Returns the index of the element with the same identity.
fn position<'a>(
    elements: &[Cel<'a>],
    sought: &Cel<'a>,
    kind: &ListKind,
    steps: &mut Steps,
) -> Result<Option<usize>, EvaluationError> {
    for (at, element) in elements.iter().enumerate() {
        let is_same = match kind {
            ListKind::Atomic | ListKind::Set => equal(element, sought, 0, steps)?,
            ListKind::Map(keys) => same_keys(element, sought, keys, steps)?,
        };
        if is_same {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn same_keys(left: &Cel<'_>, right: &Cel<'_>, keys: &[String], steps: &mut Steps) -> Result<bool, EvaluationError> {
    let (Cel::Map(left), Cel::Map(right)) = (left, right) else { return Ok(false) };
    for key in keys {
        let name = crate::shape::escape(key).unwrap_or_else(|| key.clone());
        let is_same = match (left.field(&name), right.field(&name)) {
            (Some(left), Some(right)) => equal(&left, &right, 0, steps)?,
            (None, None) => true,
            (_, _) => false,
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn subtract<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Int(left), Cel::Int(right)] => left.checked_sub(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_sub(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        [Cel::Double(left), Cel::Double(right)] => Ok(Cel::Double(left - right)),
        [Cel::Duration(left), Cel::Duration(right)] => {
            left.checked_sub(*right).map(Cel::Duration).ok_or_else(duration_overflow)
        }
        [Cel::Timestamp(start), Cel::Duration(nanos)] => {
            let end = nanos.checked_neg().and_then(|nanos| time::plus(*start, nanos));
            end.map(Cel::Timestamp).ok_or_else(timestamp_overflow)
        }
        [Cel::Timestamp(left), Cel::Timestamp(right)] => {
            let nanos = left.as_nanosecond() - right.as_nanosecond();
            i64::try_from(nanos).map(Cel::Duration).map_err(|_| duration_overflow())
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn multiply<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Int(left), Cel::Int(right)] => left.checked_mul(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_mul(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        [Cel::Double(left), Cel::Double(right)] => Ok(Cel::Double(left * right)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn divide<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Int(_), Cel::Int(0)] | [Cel::Uint(_), Cel::Uint(0)] => Err(EvaluationError::new("division by zero")),
        [Cel::Int(left), Cel::Int(right)] => left.checked_div(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_div(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        [Cel::Double(left), Cel::Double(right)] => Ok(Cel::Double(left / right)),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn remainder<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Int(_), Cel::Int(0)] | [Cel::Uint(_), Cel::Uint(0)] => Err(EvaluationError::new("modulus by zero")),
        [Cel::Int(left), Cel::Int(right)] => left.checked_rem(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_rem(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// Compares for equality. Numbers of different types are compared by value; other values of different types are unequal.
pub(super) fn equal(left: &Cel<'_>, right: &Cel<'_>, depth: usize, steps: &mut Steps) -> Result<bool, EvaluationError> {
    steps.take(1)?;
    if depth > DEPTH_MAX {
        return Err(EvaluationError::new("the values are too deep to be compared"));
    }
    match (left, right) {
        (Cel::Null, Cel::Null) => Ok(true),
        (Cel::Bool(left), Cel::Bool(right)) => Ok(left == right),
        (Cel::Text(left), Cel::Text(right)) => {
            steps.take_for_bytes(left.len().min(right.len()))?;
            Ok(**left == **right)
        }
        (Cel::Bytes(left), Cel::Bytes(right)) => {
            steps.take_for_bytes(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Cel::List(left), Cel::List(right)) => equal_lists(left, right, depth, steps),
        (Cel::Map(left), Cel::Map(right)) => equal_maps(left, right, depth, steps),
        (Cel::Timestamp(left), Cel::Timestamp(right)) => Ok(left == right),
        (Cel::Duration(left), Cel::Duration(right)) => Ok(left == right),
        (Cel::Type(left), Cel::Type(right)) => Ok(left == right),
        (Cel::Optional(None), Cel::Optional(None)) => Ok(true),
        (Cel::Optional(Some(left)), Cel::Optional(Some(right))) => equal(left, right, depth + 1, steps),
        (Cel::Quantity(left), Cel::Quantity(right)) => Ok(left == right),
        (Cel::Ip(left), Cel::Ip(right)) => Ok(left == right),
        (Cel::Cidr(left), Cel::Cidr(right)) => Ok(left == right),
        (Cel::Url(left), Cel::Url(right)) => Ok(left == right),
        (Cel::Hidden(left), Cel::Hidden(right)) => kept(left, right, steps),
        (_, _) => Ok(numbers(left, right) == Some(Some(Ordering::Equal))),
    }
}

/// Compares two JSON values for equality.
fn kept(left: &Value, right: &Value, steps: &mut Steps) -> Result<bool, EvaluationError> {
    equal(&Cel::from_json(left), &Cel::from_json(right), 0, steps)
}

fn equal_lists(left: &List<'_>, right: &List<'_>, depth: usize, steps: &mut Steps) -> Result<bool, EvaluationError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    if let Some(kind @ (ListKind::Set | ListKind::Map(_))) = left.kind() {
        return equal_in_any_order(left, right, kind, depth, steps);
    }
    for (left, right) in left.iter().zip(right.iter()) {
        if !equal(&left, &right, depth + 1, steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_in_any_order(
    left: &List<'_>,
    right: &List<'_>,
    kind: &ListKind,
    depth: usize,
    steps: &mut Steps,
) -> Result<bool, EvaluationError> {
    let elements: Vec<Cel<'_>> = left.iter().collect();
    for element in right.iter() {
        let Some(at) = position(&elements, &element, kind, steps)? else { return Ok(false) };
        if !equal(&elements[at], &element, depth + 1, steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(
    left: &Entries<'_>,
    right: &Entries<'_>,
    depth: usize,
    steps: &mut Steps,
) -> Result<bool, EvaluationError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    steps.take(left.len())?;
    if let (Entries::Object(one, shape), Entries::Object(other, _)) = (left, right) {
        // Fields that rules cannot name count too.
        for (name, value) in one.iter().filter(|(name, _)| !shape.fields.values().any(|(own, _)| own == *name)) {
            if other.get(name).is_some_and(|other| !kept(value, other, steps).unwrap_or(false)) {
                return Ok(false);
            }
        }
    }
    for key in left.keys() {
        let (left, right) = match (left.get(&key), right.get(&key)) {
            (Some(left), Some(right)) => (left, right),
            (None, None) => continue,
            (_, _) => return Ok(false),
        };
        if !equal(&left, &right, depth + 1, steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two numbers of any type: `None` if one is not numeric, `Some(None)` if one is NaN.
fn numbers(left: &Cel<'_>, right: &Cel<'_>) -> Option<Option<Ordering>> {
    match (left, right) {
        (Cel::Double(left), Cel::Double(right)) => Some(left.partial_cmp(right)),
        (Cel::Double(left), right) => Some(compare_double_with_integer(*left, whole(right)?)),
        (left, Cel::Double(right)) => Some(compare_double_with_integer(*right, whole(left)?).map(Ordering::reverse)),
        (left, right) => Some(Some(whole(left)?.cmp(&whole(right)?))),
    }
}

fn whole(value: &Cel<'_>) -> Option<i128> {
    match value {
        Cel::Int(value) => Some(i128::from(*value)),
        Cel::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Compares two values of an ordered type.
pub(super) fn order(left: &Cel<'_>, right: &Cel<'_>, steps: &mut Steps) -> Result<Ordering, EvaluationError> {
    match (left, right) {
        (Cel::Bool(left), Cel::Bool(right)) => Ok(left.cmp(right)),
        (Cel::Text(left), Cel::Text(right)) => {
            steps.take_for_bytes(left.len().min(right.len()))?;
            Ok((**left).cmp(&**right))
        }
        (Cel::Bytes(left), Cel::Bytes(right)) => {
            steps.take_for_bytes(left.len().min(right.len()))?;
            Ok(left.cmp(right))
        }
        (Cel::Timestamp(left), Cel::Timestamp(right)) => Ok(left.cmp(right)),
        (Cel::Duration(left), Cel::Duration(right)) => Ok(left.cmp(right)),
        (_, _) => match numbers(left, right) {
            Some(Some(ordering)) => Ok(ordering),
            Some(None) => Err(EvaluationError::new("NaN values cannot be ordered")),
            None => Err(EvaluationError::no_such_overload()),
        },
    }
}

/// Implements `in`: membership in a list or a key of a map.
pub(super) fn contained<'a>(value: &Cel<'a>, of: &Cel<'a>, steps: &mut Steps) -> Result<bool, EvaluationError> {
    match of {
        Cel::List(list) => {
            for element in list.iter() {
                if equal(value, &element, 0, steps)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Cel::Map(entries) => Ok(entries.get(value).is_some()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn index<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [of, index] = arguments else { return Err(EvaluationError::no_such_overload()) };
    if let Cel::Optional(inner) = of {
        return match inner {
            None => Ok(Cel::Optional(None)),
            Some(inner) => Ok(Cel::Optional(element(inner, index)?.map(Rc::new))),
        };
    }
    match element(of, index)? {
        Some(found) => Ok(found),
        None => Err(missing(of, index)),
    }
}

fn optional_index<'a>(arguments: &[Cel<'a>], _context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Optional(None), _] => Ok(Cel::Optional(None)),
        [Cel::Optional(Some(inner)), index] => Ok(Cel::Optional(element(inner, index)?.map(Rc::new))),
        [of, index] => Ok(Cel::Optional(element(of, index)?.map(Rc::new))),
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn element<'a>(of: &Cel<'a>, index: &Cel<'a>) -> Result<Option<Cel<'a>>, EvaluationError> {
    match (of, index) {
        (Cel::List(list), Cel::Double(double)) if double.fract() == 0.0 => {
            Ok((*double >= 0.0).then(|| list.get(*double as usize)).flatten())
        }
        (Cel::List(list), index) => {
            let position = whole(index).ok_or_else(|| {
                EvaluationError::new(format!("unsupported index type '{}' in list", index.type_name()))
            })?;
            Ok(usize::try_from(position).ok().and_then(|position| list.get(position)))
        }
        (Cel::Map(entries), key) => Ok(entries.get(key)),
        (_, _) => Err(EvaluationError::no_such_overload()),
    }
}

/// Returns the error for a missing element.
fn missing(of: &Cel<'_>, index: &Cel<'_>) -> EvaluationError {
    let shown = super::convert::shown(index);
    match of {
        Cel::List(_) => EvaluationError::with_redacted(format!("index out of bounds: {shown}"), "index out of bounds"),
        _ => EvaluationError::with_redacted(format!("no such key: {shown}"), "no such key"),
    }
}

/// Implements `size`; strings count characters.
fn size<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    match arguments {
        [Cel::Text(text)] => {
            context.steps.take_for_bytes(text.len())?;
            Ok(length_value(text.chars().count()))
        }
        [Cel::Bytes(bytes)] => Ok(length_value(bytes.len())),
        [Cel::List(list)] => Ok(length_value(list.len())),
        [Cel::Map(entries)] => Ok(length_value(entries.len())),
        _ => Err(EvaluationError::no_such_overload()),
    }
}
