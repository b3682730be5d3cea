//! `format`: a text with places for values.

use super::convert::text_of;
use super::{Outcome, Table, Tools};
use crate::failure::Failure;
use crate::value::Cel;

/// How many digits follow the point where nobody says how many.
const DIGITS: usize = 6;
/// The most digits that anybody may ask for.
const DIGITS_MAX: usize = 100;
/// The deepest values that are written.
const DEPTH_MAX: usize = 32;

pub(super) const TABLE: Table = &[("format", format_text)];

fn format_text<'a>(arguments: &[Cel<'a>], tools: &mut Tools) -> Outcome<'a> {
    let [Cel::Text(text), Cel::List(values)] = arguments else { return Err(Failure::no_such_overload()) };
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
            return Err(Failure::wrong("index out of range"));
        };
        let (digits, clause, after) = clause(after)?;
        let part = clause_text(clause, digits, &value, tools).map_err(formatting)?;
        tools.steps.take(part.len())?;
        written.push_str(&part);
        rest = after;
    }
    tools.steps.take(text.len())?;
    written.push_str(rest);
    Ok(Cel::text(written))
}

fn formatting(failure: Failure) -> Failure {
    match failure {
        Failure::Wrong { said, discreet } => {
            Failure::about(format!("error during formatting: {said}"), format!("error during formatting: {discreet}"))
        }
        Failure::Exhausted => Failure::Exhausted,
    }
}

/// How many digits are asked for, the letter, and what follows.
fn clause(text: &str) -> Result<(usize, char, &str), Failure> {
    let wrong = |why: &str| Failure::wrong(format!("could not parse formatting clause: {why}"));
    let (digits, rest) = match text.strip_prefix('.') {
        None => (DIGITS, text),
        Some(rest) => {
            let end = rest.find(|character: char| !character.is_ascii_digit());
            let end = end.ok_or_else(|| wrong("could not find end of precision specifier"))?;
            let digits = rest[..end].parse::<usize>().ok().filter(|digits| *digits <= DIGITS_MAX);
            (digits.ok_or_else(|| wrong("error while converting precision to integer"))?, &rest[end..])
        }
    };
    let letter = rest.chars().next().ok_or_else(|| Failure::wrong("unexpected end of string"))?;
    if !"sdfebxXo".contains(letter) {
        return Err(wrong(&format!("unrecognized formatting clause \"{letter}\"")));
    }
    Ok((digits, letter, &rest[letter.len_utf8()..]))
}

fn clause_text(clause: char, digits: usize, value: &Cel<'_>, tools: &mut Tools) -> Result<String, Failure> {
    let text = match (clause, value) {
        ('s', value) => return plain(value, 0, tools),
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
        ('x', Cel::Text(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ('X', Cel::Text(text)) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ('x', Cel::Bytes(bytes)) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ('X', Cel::Bytes(bytes)) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        (clause, value) => return Err(unfit(clause, value)),
    };
    Ok(text)
}

fn unfit(clause: char, value: &Cel<'_>) -> Failure {
    let kind = value.kind();
    Failure::wrong(match clause {
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

/// With the exponent as a power of ten.
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

/// As `%s` writes it.
fn plain(value: &Cel<'_>, depth: usize, tools: &mut Tools) -> Result<String, Failure> {
    tools.steps.take(1)?;
    if depth > DEPTH_MAX {
        return Err(Failure::wrong("the value is too deep to be formatted"));
    }
    match value {
        Cel::Null => Ok("null".to_owned()),
        Cel::Bytes(bytes) => {
            tools.steps.take(bytes.len())?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
        Cel::List(list) => {
            let mut parts = Vec::new();
            for element in list.iter() {
                parts.push(inner(&element, depth + 1, tools)?);
            }
            Ok(format!("[{}]", parts.join(", ")))
        }
        Cel::Map(entries) => {
            let mut parts = Vec::new();
            for key in entries.keys() {
                let value = entries.get(&key).unwrap_or(Cel::Null);
                parts.push(format!("{}:{}", inner(&key, depth + 1, tools)?, inner(&value, depth + 1, tools)?));
            }
            parts.sort_unstable();
            Ok(format!("{{{}}}", parts.join(", ")))
        }
        Cel::Ip(_) | Cel::Cidr(_) => Err(unfit('s', value)),
        other => {
            let text = text_of(other).ok_or_else(|| unfit('s', other))?;
            tools.steps.take(text.len())?;
            Ok(text)
        }
    }
}

/// As it is written within a list or a map: so that it could stand in a rule.
fn inner(value: &Cel<'_>, depth: usize, tools: &mut Tools) -> Result<String, Failure> {
    let text = plain(value, depth, tools)?;
    Ok(match value {
        Cel::Text(_) => format!("{text:?}"),
        Cel::Bytes(_) => format!("b{text:?}"),
        Cel::Double(value) => format!("{value:.DIGITS$}"),
        Cel::Timestamp(_) => format!("timestamp({text:?})"),
        Cel::Duration(_) => format!("duration({text:?})"),
        _ => text,
    })
}
