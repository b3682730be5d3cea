//! Operators and functions on values. None overflows, and no error says what a value holds.

use std::cmp::Ordering;
use std::rc::Rc;

use super::evaluate::{Failure, Steps};
use super::node::Function;
use super::value::{Cel, Entries, List};

/// The deepest values that are compared.
const DEPTH_MAX: usize = 128;
/// 2^63 and 2^64, which the whole numbers stay below.
const INT_END: f64 = 9_223_372_036_854_775_808.0;
const UINT_END: f64 = 18_446_744_073_709_551_616.0;

type Outcome<'a> = Result<Cel<'a>, Failure>;

/// Calls a function with as many arguments as it takes.
pub(super) fn call<'a>(function: Function, arguments: &[Cel<'a>], steps: &mut Steps) -> Outcome<'a> {
    match arguments {
        [value] => one(function, value, steps),
        [left, right] => two(function, left, right, steps),
        _ => Err(Failure::wrong("no function takes so many arguments")),
    }
}

fn one<'a>(function: Function, value: &Cel<'a>, steps: &mut Steps) -> Outcome<'a> {
    match function {
        Function::Not => match value {
            Cel::Bool(value) => Ok(Cel::Bool(!value)),
            other => Err(Failure::wrong(format!("! is not for {}", other.kind()))),
        },
        Function::Negate => match value {
            Cel::Int(value) => value.checked_neg().map(Cel::Int).ok_or_else(overflow),
            Cel::Double(value) => Ok(Cel::Double(-value)),
            other => Err(Failure::wrong(format!("- is not for {}", other.kind()))),
        },
        Function::Size => size(value, steps),
        Function::ToInt => to_int(value),
        Function::ToUint => to_uint(value),
        Function::ToDouble => to_double(value),
        Function::ToText => to_text(value),
        Function::Add
        | Function::Subtract
        | Function::Multiply
        | Function::Divide
        | Function::Remainder
        | Function::Equal
        | Function::NotEqual
        | Function::Less
        | Function::LessOrEqual
        | Function::Greater
        | Function::GreaterOrEqual
        | Function::In
        | Function::Index
        | Function::StartsWith
        | Function::EndsWith
        | Function::Contains => Err(Failure::wrong(format!("{function:?} takes two arguments"))),
    }
}

fn two<'a>(function: Function, left: &Cel<'a>, right: &Cel<'a>, steps: &mut Steps) -> Outcome<'a> {
    let ordered =
        |holds: fn(Ordering) -> bool, steps: &mut Steps| Ok(Cel::Bool(order(left, right, steps)?.is_some_and(holds)));
    match function {
        Function::Equal => equal(left, right, 0, steps).map(Cel::Bool),
        Function::NotEqual => equal(left, right, 0, steps).map(|is_equal| Cel::Bool(!is_equal)),
        Function::Less => ordered(Ordering::is_lt, steps),
        Function::LessOrEqual => ordered(Ordering::is_le, steps),
        Function::Greater => ordered(Ordering::is_gt, steps),
        Function::GreaterOrEqual => ordered(Ordering::is_ge, steps),
        Function::In => contained(left, right, steps).map(Cel::Bool),
        Function::Index => index(left, right),
        Function::StartsWith => text_holds(function, left, right, steps, |whole, part| whole.starts_with(part)),
        Function::EndsWith => text_holds(function, left, right, steps, |whole, part| whole.ends_with(part)),
        Function::Contains => text_holds(function, left, right, steps, |whole, part| whole.contains(part)),
        Function::Add => match (left, right) {
            (Cel::Text(left), Cel::Text(right)) => {
                steps.take(left.len() + right.len())?;
                Ok(Cel::text(format!("{}{}", &**left, &**right)))
            }
            (Cel::List(left), Cel::List(right)) => {
                steps.take(left.len() + right.len())?;
                Ok(Cel::list(left.iter().chain(right.iter()).collect()))
            }
            (_, _) => arithmetic(function, left, right),
        },
        Function::Subtract | Function::Multiply | Function::Divide | Function::Remainder => {
            arithmetic(function, left, right)
        }
        Function::Not
        | Function::Negate
        | Function::Size
        | Function::ToInt
        | Function::ToUint
        | Function::ToDouble
        | Function::ToText => Err(Failure::wrong(format!("{function:?} takes one argument"))),
    }
}

fn overflow() -> Failure {
    Failure::wrong("the number is out of range")
}

fn unfit(function: Function, left: &Cel<'_>, right: &Cel<'_>) -> Failure {
    Failure::wrong(format!("{function:?} is not for {} and {}", left.kind(), right.kind()))
}

/// As CEL has it: only numbers of one kind.
fn arithmetic<'a>(function: Function, left: &Cel<'a>, right: &Cel<'a>) -> Outcome<'a> {
    let by_zero = matches!(right, Cel::Int(0) | Cel::Uint(0));
    if by_zero && matches!(function, Function::Divide | Function::Remainder) {
        return Err(Failure::wrong("division by zero"));
    }
    let value = match (function, left, right) {
        (Function::Add, Cel::Int(left), Cel::Int(right)) => left.checked_add(*right).map(Cel::Int),
        (Function::Subtract, Cel::Int(left), Cel::Int(right)) => left.checked_sub(*right).map(Cel::Int),
        (Function::Multiply, Cel::Int(left), Cel::Int(right)) => left.checked_mul(*right).map(Cel::Int),
        (Function::Divide, Cel::Int(left), Cel::Int(right)) => left.checked_div(*right).map(Cel::Int),
        (Function::Remainder, Cel::Int(left), Cel::Int(right)) => left.checked_rem(*right).map(Cel::Int),
        (Function::Add, Cel::Uint(left), Cel::Uint(right)) => left.checked_add(*right).map(Cel::Uint),
        (Function::Subtract, Cel::Uint(left), Cel::Uint(right)) => left.checked_sub(*right).map(Cel::Uint),
        (Function::Multiply, Cel::Uint(left), Cel::Uint(right)) => left.checked_mul(*right).map(Cel::Uint),
        (Function::Divide, Cel::Uint(left), Cel::Uint(right)) => left.checked_div(*right).map(Cel::Uint),
        (Function::Remainder, Cel::Uint(left), Cel::Uint(right)) => left.checked_rem(*right).map(Cel::Uint),
        (Function::Add, Cel::Double(left), Cel::Double(right)) => Some(Cel::Double(left + right)),
        (Function::Subtract, Cel::Double(left), Cel::Double(right)) => Some(Cel::Double(left - right)),
        (Function::Multiply, Cel::Double(left), Cel::Double(right)) => Some(Cel::Double(left * right)),
        (Function::Divide, Cel::Double(left), Cel::Double(right)) => Some(Cel::Double(left / right)),
        (_, _, _) => return Err(unfit(function, left, right)),
    };
    value.ok_or_else(overflow)
}

/// Numbers of different kinds are compared by their value; other things of different kinds are not equal.
fn equal(left: &Cel<'_>, right: &Cel<'_>, depth: usize, steps: &mut Steps) -> Result<bool, Failure> {
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
        (Cel::List(left), Cel::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right.iter()) {
                if !equal(&left, &right, depth + 1, steps)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Cel::Map(left), Cel::Map(right)) => equal_maps(left, right, depth, steps),
        (_, _) => Ok(numbers(left, right) == Some(Some(Ordering::Equal))),
    }
}

fn equal_maps(left: &Entries<'_>, right: &Entries<'_>, depth: usize, steps: &mut Steps) -> Result<bool, Failure> {
    if left.len() != right.len() {
        return Ok(false);
    }
    steps.take(left.len())?;
    for name in left.names() {
        let Cel::Text(name) = name else { continue };
        steps.read(name.len())?;
        let (Some(left), Some(right)) = (left.get(&name), right.get(&name)) else { return Ok(false) };
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
        Cel::Null | Cel::Bool(_) | Cel::Double(_) | Cel::Text(_) | Cel::List(_) | Cel::Map(_) => None,
    }
}

/// Without rounding the whole number, which may have more digits than a double.
fn double_to_whole(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    let by_size = if double >= UINT_END {
        Ordering::Greater
    } else if double < -INT_END {
        Ordering::Less
    } else {
        // Within the range of i128 by the above; the fraction decides between equals.
        (double.floor() as i128).cmp(&whole)
    };
    let has_fraction = double.fract() != 0.0;
    Some(if by_size == Ordering::Equal && has_fraction { Ordering::Greater } else { by_size })
}

fn order(left: &Cel<'_>, right: &Cel<'_>, steps: &mut Steps) -> Result<Option<Ordering>, Failure> {
    match (left, right) {
        (Cel::Bool(left), Cel::Bool(right)) => Ok(Some(left.cmp(right))),
        (Cel::Text(left), Cel::Text(right)) => {
            steps.read(left.len().min(right.len()))?;
            Ok(Some((**left).cmp(&**right)))
        }
        (_, _) => numbers(left, right)
            .ok_or_else(|| Failure::wrong(format!("{} and {} have no order", left.kind(), right.kind()))),
    }
}

fn contained(value: &Cel<'_>, of: &Cel<'_>, steps: &mut Steps) -> Result<bool, Failure> {
    match (value, of) {
        (value, Cel::List(list)) => {
            for element in list.iter() {
                if equal(value, &element, 0, steps)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Cel::Text(name), Cel::Map(entries)) => Ok(entries.get(name).is_some()),
        (_, Cel::Map(_)) => Ok(false),
        (_, _) => Err(Failure::wrong(format!("nothing is in {}", of.kind()))),
    }
}

fn index<'a>(of: &Cel<'a>, index: &Cel<'a>) -> Outcome<'a> {
    match (of, index) {
        (Cel::List(list), index) => {
            let position = whole(index).ok_or_else(|| unfit(Function::Index, of, index))?;
            let element = usize::try_from(position).ok().and_then(|position| list.get(position));
            element.ok_or_else(|| Failure::wrong(format!("the list has {} elements, not so many", List::len(list))))
        }
        (Cel::Map(entries), Cel::Text(name)) => entries.get(name).ok_or_else(|| Failure::wrong("there is no such key")),
        (_, _) => Err(unfit(Function::Index, of, index)),
    }
}

fn text_holds<'a>(
    function: Function,
    whole: &Cel<'a>,
    part: &Cel<'a>,
    steps: &mut Steps,
    holds: fn(&str, &str) -> bool,
) -> Outcome<'a> {
    let (Cel::Text(text), Cel::Text(sought)) = (whole, part) else { return Err(unfit(function, whole, part)) };
    steps.read(text.len() + sought.len())?;
    Ok(Cel::Bool(holds(text, sought)))
}

/// Of a text its characters.
fn size<'a>(value: &Cel<'a>, steps: &mut Steps) -> Outcome<'a> {
    let size = match value {
        Cel::Text(text) => {
            steps.read(text.len())?;
            text.chars().count()
        }
        Cel::List(list) => list.len(),
        Cel::Map(entries) => entries.len(),
        Cel::Null | Cel::Bool(_) | Cel::Int(_) | Cel::Uint(_) | Cel::Double(_) => {
            return Err(Failure::wrong(format!("{} has no size", value.kind())));
        }
    };
    i64::try_from(size).map(Cel::Int).map_err(|_| overflow())
}

fn no_number(value: &Cel<'_>) -> Failure {
    Failure::wrong(format!("{} that is no such number", value.kind()))
}

fn to_int<'a>(value: &Cel<'a>) -> Outcome<'a> {
    let number = match value {
        Cel::Int(value) => Some(*value),
        Cel::Uint(value) => i64::try_from(*value).ok(),
        Cel::Double(value) => (value.is_finite() && (-INT_END..INT_END).contains(value)).then_some(*value as i64),
        Cel::Text(text) => text.parse().ok(),
        Cel::Null | Cel::Bool(_) | Cel::List(_) | Cel::Map(_) => None,
    };
    number.map(Cel::Int).ok_or_else(|| no_number(value))
}

fn to_uint<'a>(value: &Cel<'a>) -> Outcome<'a> {
    let number = match value {
        Cel::Int(value) => u64::try_from(*value).ok(),
        Cel::Uint(value) => Some(*value),
        Cel::Double(value) => (value.is_finite() && (0.0..UINT_END).contains(value)).then_some(*value as u64),
        Cel::Text(text) => text.parse().ok(),
        Cel::Null | Cel::Bool(_) | Cel::List(_) | Cel::Map(_) => None,
    };
    number.map(Cel::Uint).ok_or_else(|| no_number(value))
}

fn to_double<'a>(value: &Cel<'a>) -> Outcome<'a> {
    let number = match value {
        Cel::Int(value) => Some(*value as f64),
        Cel::Uint(value) => Some(*value as f64),
        Cel::Double(value) => Some(*value),
        Cel::Text(text) => text.parse().ok(),
        Cel::Null | Cel::Bool(_) | Cel::List(_) | Cel::Map(_) => None,
    };
    number.map(Cel::Double).ok_or_else(|| no_number(value))
}

fn to_text<'a>(value: &Cel<'a>) -> Outcome<'a> {
    let text = match value {
        Cel::Bool(value) => value.to_string(),
        Cel::Int(value) => value.to_string(),
        Cel::Uint(value) => value.to_string(),
        Cel::Double(value) => value.to_string(),
        Cel::Text(_) => return Ok(value.clone()),
        Cel::Null | Cel::List(_) | Cel::Map(_) => {
            return Err(Failure::wrong(format!("{} cannot be made a string", value.kind())));
        }
    };
    Ok(Cel::Text(super::value::Text::Made(Rc::from(text))))
}
