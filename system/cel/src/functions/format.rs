//! `format`: strings with placeholders.

use super::context::{EvaluationContext, EvaluationResult, Table};
use super::convert::text_of;
use crate::evaluation_error::EvaluationError;
use crate::value::Cel;

/// Default number of fraction digits.
const DIGITS: usize = 6;
/// Maximum number of fraction digits.
const DIGITS_MAX: usize = 100;
/// Maximum nesting of a formatted value.
const DEPTH_MAX: usize = 32;

pub(super) const TABLE: Table = &[("format", format_text)];

fn format_text<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [Cel::Text(text), Cel::List(values)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    let mut values = values.iter().enumerate();
    let mut written = String::new();
    let mut rest: &str = text;
    while let Some((before, after)) = rest.split_once('%') {
        written.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            written.push('%');
            rest = after;
            continue;
        }
        let Some((_, value)) = values.next() else {
            return Err(EvaluationError::new("index out of range"));
        };
        let (digits, clause, after) = clause(after)?;
        let part = clause_text(clause, digits, &value, context).map_err(formatting)?;
        context.steps.take(part.len())?;
        written.push_str(&part);
        rest = after;
    }
    context.steps.take(text.len())?;
    written.push_str(rest);
    Ok(Cel::text(written))
}

fn formatting(failure: EvaluationError) -> EvaluationError {
    match failure {
        EvaluationError::Failed { message, redacted } => EvaluationError::with_redacted(
            format!("error during formatting: {message}"),
            format!("error during formatting: {redacted}"),
        ),
        EvaluationError::BudgetExceeded => EvaluationError::BudgetExceeded,
    }
}

/// Splits a placeholder into its precision, its letter and the rest of the text.
fn clause(text: &str) -> Result<(usize, char, &str), EvaluationError> {
    let wrong = |why: &str| EvaluationError::new(format!("could not parse formatting clause: {why}"));
    let (digits, rest) = match text.strip_prefix('.') {
        None => (DIGITS, text),
        Some(rest) => {
            let end = rest.find(|character: char| !character.is_ascii_digit());
            let end = end.ok_or_else(|| wrong("could not find end of precision specifier"))?;
            let digits = rest[..end].parse::<usize>().ok().filter(|digits| *digits <= DIGITS_MAX);
            (digits.ok_or_else(|| wrong("error while converting precision to integer"))?, &rest[end..])
        }
    };
    let letter = rest.chars().next().ok_or_else(|| EvaluationError::new("unexpected end of string"))?;
    if !"sdfebxXo".contains(letter) {
        return Err(wrong(&format!("unrecognized formatting clause \"{letter}\"")));
    }
    Ok((digits, letter, &rest[letter.len_utf8()..]))
}

fn clause_text(
    clause: char,
    digits: usize,
    value: &Cel<'_>,
    context: &mut EvaluationContext,
) -> Result<String, EvaluationError> {
    let text = match (clause, value) {
        ('s', value) => return plain(value, 0, context),
        ('d', Cel::Int(value)) => value.to_string(),
        ('d', Cel::Uint(value)) => value.to_string(),
        ('f', Cel::Double(value)) => format!("{value:.digits$}"),
        ('e', Cel::Double(value)) => exponent(*value, digits),
        ('b', Cel::Bool(value)) => u8::from(*value).to_string(),
        ('b', Cel::Int(value)) => signed(*value, |size| format!("{size:b}")),
        ('b', Cel::Uint(value)) => format!("{value:b}"),
        ('o', Cel::Int(value)) => signed(*value, |size| format!("{size:o}")),
        ('o', Cel::Uint(value)) => format!("{value:o}"),
        ('x', Cel::Int(value)) => signed(*value, |size| format!("{size:x}")),
        ('X', Cel::Int(value)) => signed(*value, |size| format!("{size:X}")),
        ('x', Cel::Uint(value)) => format!("{value:x}"),
        ('X', Cel::Uint(value)) => format!("{value:X}"),
        ('x', Cel::Text(text)) => hex::encode(text.as_bytes()),
        ('X', Cel::Text(text)) => hex::encode_upper(text.as_bytes()),
        ('x', Cel::Bytes(bytes)) => hex::encode(bytes),
        ('X', Cel::Bytes(bytes)) => hex::encode_upper(bytes),
        (clause, value) => return Err(unfit(clause, value)),
    };
    Ok(text)
}

fn unfit(clause: char, value: &Cel<'_>) -> EvaluationError {
    let kind = value.type_name();
    EvaluationError::new(match clause {
        'd' => format!("decimal clause can only be used on integers, was given {kind}"),
        'f' => format!("fixed-point clause can only be used on doubles, was given {kind}"),
        'e' => format!("scientific clause can only be used on doubles, was given {kind}"),
        'b' => format!("only integers and bools can be formatted as binary, was given {kind}"),
        'o' => format!("octal clause can only be used on integers, was given {kind}"),
        'x' | 'X' => format!("only integers, byte buffers, and strings can be formatted as hex, was given {kind}"),
        _ => format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {kind}"
        ),
    })
}

fn signed(value: i64, written: fn(u64) -> String) -> String {
    let size = written(value.unsigned_abs());
    if value < 0 { format!("-{size}") } else { size }
}

/// Formats a double in scientific notation.
fn exponent(value: f64, digits: usize) -> String {
    let raised = |character: char| match character {
        '-' => '⁻',
        digit => digit.to_digit(10).and_then(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize)).unwrap_or(digit),
    };
    let written = format!("{value:.digits$e}");
    let Some((digits, exponent)) = written.split_once('e') else { return written };
    let (sign, size) = exponent.strip_prefix('-').map_or(("", exponent), |size| ("-", size));
    let power: String = format!("{sign}{size:0>2}").chars().map(raised).collect();
    format!("{digits}×10{power}")
}

/// Formats a value for `%s`.
fn plain(value: &Cel<'_>, depth: usize, context: &mut EvaluationContext) -> Result<String, EvaluationError> {
    context.steps.take(1)?;
    if depth > DEPTH_MAX {
        return Err(EvaluationError::new("the value is too deep to be formatted"));
    }
    match value {
        Cel::Null => Ok("null".to_owned()),
        Cel::Bytes(bytes) => {
            context.steps.take(bytes.len())?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
        Cel::List(list) => {
            let mut parts = Vec::new();
            for element in list.iter() {
                parts.push(inner(&element, depth + 1, context)?);
            }
            Ok(format!("[{}]", parts.join(", ")))
        }
        Cel::Map(entries) => {
            let mut parts = Vec::new();
            for key in entries.keys() {
                let value = entries.get(&key).unwrap_or(Cel::Null);
                parts.push(format!("{}:{}", inner(&key, depth + 1, context)?, inner(&value, depth + 1, context)?));
            }
            parts.sort_unstable();
            Ok(format!("{{{}}}", parts.join(", ")))
        }
        Cel::Ip(_) | Cel::Cidr(_) => Err(unfit('s', value)),
        other => {
            let text = text_of(other).ok_or_else(|| unfit('s', other))?;
            context.steps.take(text.len())?;
            Ok(text)
        }
    }
}

/// Formats an element of a list or a map, as a literal of a rule.
fn inner(value: &Cel<'_>, depth: usize, context: &mut EvaluationContext) -> Result<String, EvaluationError> {
    let text = plain(value, depth, context)?;
    Ok(match value {
        Cel::Text(_) => format!("{text:?}"),
        Cel::Bytes(_) => format!("b{text:?}"),
        Cel::Double(value) => format!("{value:.DIGITS$}"),
        Cel::Timestamp(_) => format!("timestamp({text:?})"),
        Cel::Duration(_) => format!("duration({text:?})"),
        _ => text,
    })
}
