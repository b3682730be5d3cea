//! Arithmetic, comparison, membership and size.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value;

use super::{Outcome, Table, Tools, count};
use crate::budget::Steps;
use crate::failure::Failure;
use crate::number::double_to_whole;
use crate::shape::ListKind;
use crate::time;
use crate::value::{Cel, Entries, List};

/// The deepest values that are compared.
const DEPTH_MAX: usize = 128;

pub(super) const TABLE: Table = &[
    ("!_", not),
    ("-_", negate),
    ("_+_", add),
    ("_-_", subtract),
    ("_*_", multiply),
    ("_/_", divide),
    ("_%_", remainder),
    ("_==_", |arguments, tools| both(arguments, tools, |left, right, steps| equal(left, right, 0, steps))),
    ("_!=_", |arguments, tools| both(arguments, tools, |left, right, steps| Ok(!equal(left, right, 0, steps)?))),
    ("_<_", |arguments, tools| both(arguments, tools, |left, right, steps| Ok(order(left, right, steps)?.is_lt()))),
    ("_<=_", |arguments, tools| both(arguments, tools, |left, right, steps| Ok(order(left, right, steps)?.is_le()))),
    ("_>_", |arguments, tools| both(arguments, tools, |left, right, steps| Ok(order(left, right, steps)?.is_gt()))),
    ("_>=_", |arguments, tools| both(arguments, tools, |left, right, steps| Ok(order(left, right, steps)?.is_ge()))),
    ("@in", |arguments, tools| both(arguments, tools, contained)),
    ("_[_]", index),
    ("_[?_]", optional_index),
    ("size", size),
];

fn both<'a>(
    arguments: &[Cel<'a>],
    tools: &mut Tools,
    holds: fn(&Cel<'a>, &Cel<'a>, &mut Steps) -> Result<bool, Failure>,
) -> Outcome<'a> {
    match arguments {
        [left, right] => holds(left, right, &mut tools.steps).map(Cel::Bool),
        _ => Err(Failure::no_such_overload()),
    }
}

fn not<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Bool(value)] => Ok(Cel::Bool(!value)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn int_overflow() -> Failure {
    Failure::wrong("integer overflow")
}

fn uint_overflow() -> Failure {
    Failure::wrong("unsigned integer overflow")
}

fn duration_overflow() -> Failure {
    Failure::wrong("duration overflow")
}

fn timestamp_overflow() -> Failure {
    Failure::wrong("timestamp overflow")
}

fn negate<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Int(value)] => value.checked_neg().map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Double(value)] => Ok(Cel::Double(-value)),
        [Cel::Duration(value)] => value.checked_neg().map(Cel::Duration).ok_or_else(duration_overflow),
        _ => Err(Failure::no_such_overload()),
    }
}

fn add<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Text(left), Cel::Text(right)] => {
            tools.steps.take(left.len() + right.len())?;
            Ok(Cel::text(format!("{}{}", &**left, &**right)))
        }
        [Cel::Bytes(left), Cel::Bytes(right)] => {
            tools.steps.take(left.len() + right.len())?;
            Ok(Cel::Bytes(Rc::from([&**left, &**right].concat())))
        }
        [Cel::List(left), Cel::List(right)] => joined(left, right, &mut tools.steps),
        [left, right] => sum(left, right),
        _ => Err(Failure::no_such_overload()),
    }
}

/// The sum of numbers and times.
pub(super) fn sum<'a>(left: &Cel<'a>, right: &Cel<'a>) -> Outcome<'a> {
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
        (_, _) => Err(Failure::no_such_overload()),
    }
}

/// Two lists as one: a set takes only what it does not have, and a list by keys replaces what it has.
fn joined<'a>(left: &List<'a>, right: &List<'a>, steps: &mut Steps) -> Outcome<'a> {
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
    Ok(Cel::List(List::Made(elements.into(), left.kind())))
}

/// Where the same element is, by what tells elements apart.
fn position<'a>(
    elements: &[Cel<'a>],
    sought: &Cel<'a>,
    kind: &ListKind,
    steps: &mut Steps,
) -> Result<Option<usize>, Failure> {
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

fn same_keys(left: &Cel<'_>, right: &Cel<'_>, keys: &[String], steps: &mut Steps) -> Result<bool, Failure> {
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

fn subtract<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
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
        _ => Err(Failure::no_such_overload()),
    }
}

fn multiply<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Int(left), Cel::Int(right)] => left.checked_mul(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_mul(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        [Cel::Double(left), Cel::Double(right)] => Ok(Cel::Double(left * right)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn divide<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Int(_), Cel::Int(0)] | [Cel::Uint(_), Cel::Uint(0)] => Err(Failure::wrong("division by zero")),
        [Cel::Int(left), Cel::Int(right)] => left.checked_div(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_div(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        [Cel::Double(left), Cel::Double(right)] => Ok(Cel::Double(left / right)),
        _ => Err(Failure::no_such_overload()),
    }
}

fn remainder<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Int(_), Cel::Int(0)] | [Cel::Uint(_), Cel::Uint(0)] => Err(Failure::wrong("modulus by zero")),
        [Cel::Int(left), Cel::Int(right)] => left.checked_rem(*right).map(Cel::Int).ok_or_else(int_overflow),
        [Cel::Uint(left), Cel::Uint(right)] => left.checked_rem(*right).map(Cel::Uint).ok_or_else(uint_overflow),
        _ => Err(Failure::no_such_overload()),
    }
}

/// Numbers of different kinds are compared by their value; other things of different kinds are not equal.
pub(super) fn equal(left: &Cel<'_>, right: &Cel<'_>, depth: usize, steps: &mut Steps) -> Result<bool, Failure> {
    steps.take(1)?;
    if depth > DEPTH_MAX {
        return Err(Failure::wrong("the values are too deep to be compared"));
    }
    match (left, right) {
        (Cel::Null, Cel::Null) => Ok(true),
        (Cel::Bool(left), Cel::Bool(right)) => Ok(left == right),
        (Cel::Text(left), Cel::Text(right)) => {
            steps.read(left.len().min(right.len()))?;
            Ok(**left == **right)
        }
        (Cel::Bytes(left), Cel::Bytes(right)) => {
            steps.read(left.len().min(right.len()))?;
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
        (Cel::Kept(left), Cel::Kept(right)) => kept(left, right, steps),
        (_, _) => Ok(numbers(left, right) == Some(Some(Ordering::Equal))),
    }
}

/// Whether two parts of objects are the same, whatever they are.
fn kept(left: &Value, right: &Value, steps: &mut Steps) -> Result<bool, Failure> {
    equal(&Cel::of(left), &Cel::of(right), 0, steps)
}

fn equal_lists(left: &List<'_>, right: &List<'_>, depth: usize, steps: &mut Steps) -> Result<bool, Failure> {
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
) -> Result<bool, Failure> {
    let elements: Vec<Cel<'_>> = left.iter().collect();
    for element in right.iter() {
        let Some(at) = position(&elements, &element, kind, steps)? else { return Ok(false) };
        if !equal(&elements[at], &element, depth + 1, steps)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(left: &Entries<'_>, right: &Entries<'_>, depth: usize, steps: &mut Steps) -> Result<bool, Failure> {
    if left.len() != right.len() {
        return Ok(false);
    }
    steps.take(left.len())?;
    if let (Entries::Object(one, shape), Entries::Object(other, _)) = (left, right) {
        // What rules cannot name counts too.
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

/// The order of two numbers, of whatever kinds: `None` if one is no number, `Some(None)` if one is not a number, as NaN is.
fn numbers(left: &Cel<'_>, right: &Cel<'_>) -> Option<Option<Ordering>> {
    match (left, right) {
        (Cel::Double(left), Cel::Double(right)) => Some(left.partial_cmp(right)),
        (Cel::Double(left), right) => Some(double_to_whole(*left, whole(right)?)),
        (left, Cel::Double(right)) => Some(double_to_whole(*right, whole(left)?).map(Ordering::reverse)),
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

/// The order of two values that have one.
pub(super) fn order(left: &Cel<'_>, right: &Cel<'_>, steps: &mut Steps) -> Result<Ordering, Failure> {
    match (left, right) {
        (Cel::Bool(left), Cel::Bool(right)) => Ok(left.cmp(right)),
        (Cel::Text(left), Cel::Text(right)) => {
            steps.read(left.len().min(right.len()))?;
            Ok((**left).cmp(&**right))
        }
        (Cel::Bytes(left), Cel::Bytes(right)) => {
            steps.read(left.len().min(right.len()))?;
            Ok(left.cmp(right))
        }
        (Cel::Timestamp(left), Cel::Timestamp(right)) => Ok(left.cmp(right)),
        (Cel::Duration(left), Cel::Duration(right)) => Ok(left.cmp(right)),
        (_, _) => match numbers(left, right) {
            Some(Some(ordering)) => Ok(ordering),
            Some(None) => Err(Failure::wrong("NaN values cannot be ordered")),
            None => Err(Failure::no_such_overload()),
        },
    }
}

/// Whether something is an element of a list or a key of a map.
pub(super) fn contained<'a>(value: &Cel<'a>, of: &Cel<'a>, steps: &mut Steps) -> Result<bool, Failure> {
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
        _ => Err(Failure::no_such_overload()),
    }
}

fn index<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    let [of, index] = arguments else { return Err(Failure::no_such_overload()) };
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

fn optional_index<'a>(arguments: &[Cel<'a>], _tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Optional(None), _] => Ok(Cel::Optional(None)),
        [Cel::Optional(Some(inner)), index] => Ok(Cel::Optional(element(inner, index)?.map(Rc::new))),
        [of, index] => Ok(Cel::Optional(element(of, index)?.map(Rc::new))),
        _ => Err(Failure::no_such_overload()),
    }
}

fn element<'a>(of: &Cel<'a>, index: &Cel<'a>) -> Result<Option<Cel<'a>>, Failure> {
    match (of, index) {
        (Cel::List(list), Cel::Double(double)) if double.fract() == 0.0 => {
            Ok((*double >= 0.0).then(|| list.get(*double as usize)).flatten())
        }
        (Cel::List(list), index) => {
            let position = whole(index)
                .ok_or_else(|| Failure::wrong(format!("unsupported index type '{}' in list", index.kind())))?;
            Ok(usize::try_from(position).ok().and_then(|position| list.get(position)))
        }
        (Cel::Map(entries), key) => Ok(entries.get(key)),
        (_, _) => Err(Failure::no_such_overload()),
    }
}

/// What is said of an element that is not there.
fn missing(of: &Cel<'_>, index: &Cel<'_>) -> Failure {
    let shown = super::convert::shown(index);
    match of {
        Cel::List(_) => Failure::about(format!("index out of bounds: {shown}"), "index out of bounds"),
        _ => Failure::about(format!("no such key: {shown}"), "no such key"),
    }
}

/// Of a text its characters.
fn size<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    match arguments {
        [Cel::Text(text)] => {
            tools.steps.read(text.len())?;
            Ok(count(text.chars().count()))
        }
        [Cel::Bytes(bytes)] => Ok(count(bytes.len())),
        [Cel::List(list)] => Ok(count(list.len())),
        [Cel::Map(entries)] => Ok(count(entries.len())),
        _ => Err(Failure::no_such_overload()),
    }
}
