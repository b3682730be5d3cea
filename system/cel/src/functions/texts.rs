//! String functions and regular expressions.

use super::context::{EvaluationContext, EvaluationResult, Table, length_value};
use crate::evaluation_error::EvaluationError;
use crate::value::{Cel, List, Text};

pub(super) const TABLE: Table = &[
    ("contains", |arguments, context| holds(arguments, context, |text, part| text.contains(part))),
    ("startsWith", |arguments, context| holds(arguments, context, |text, part| text.starts_with(part))),
    ("endsWith", |arguments, context| holds(arguments, context, |text, part| text.ends_with(part))),
    ("matches", matches),
    ("find", find),
    ("findAll", find_all),
    ("charAt", character),
    ("indexOf", |arguments, context| position(arguments, context, false)),
    ("lastIndexOf", |arguments, context| position(arguments, context, true)),
    ("lowerAscii", |arguments, context| changed(arguments, context, |text| text.to_ascii_lowercase())),
    ("upperAscii", |arguments, context| changed(arguments, context, |text| text.to_ascii_uppercase())),
    ("trim", |arguments, context| changed(arguments, context, |text| text.trim().to_owned())),
    ("strings.quote", |arguments, context| changed(arguments, context, quoted)),
    ("replace", replace),
    ("split", split),
    ("substring", substring),
    ("join", join),
];

/// Quotes a string, with escapes for unprintable characters.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn holds<'a>(
    arguments: &[Cel<'a>],
    context: &mut EvaluationContext,
    test: fn(&str, &str) -> bool,
) -> EvaluationResult<'a> {
    let [Cel::Text(text), Cel::Text(part)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    context.steps.take_for_bytes(text.len() + part.len())?;
    Ok(Cel::Bool(test(text, part)))
}

fn changed<'a>(
    arguments: &[Cel<'a>],
    context: &mut EvaluationContext,
    change: fn(&str) -> String,
) -> EvaluationResult<'a> {
    let [Cel::Text(text)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    context.steps.take(text.len())?;
    Ok(Cel::text(change(text)))
}

fn matches<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [Cel::Text(text), Cel::Text(pattern)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    let pattern = context.pattern(pattern)?;
    context.steps.take(text.len())?;
    Ok(Cel::Bool(pattern.is_in(text)))
}

fn find<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [Cel::Text(text), Cel::Text(pattern)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    let pattern = context.pattern(pattern)?;
    context.steps.take(text.len())?;
    Ok(Cel::text(pattern.find(text).unwrap_or_default()))
}

fn find_all<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (text, pattern, most) = match arguments {
        [Cel::Text(text), Cel::Text(pattern)] => (text, pattern, usize::MAX),
        [Cel::Text(text), Cel::Text(pattern), Cel::Int(most)] => {
            (text, pattern, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Err(EvaluationError::no_such_overload()),
    };
    let pattern = context.pattern(pattern)?;
    context.steps.take(text.len() * 2)?;
    Ok(Cel::list(pattern.find_all(text, most).into_iter().map(Cel::text).collect()))
}

fn out_of_range(index: i64) -> EvaluationError {
    EvaluationError::with_redacted(format!("index out of range: {index}"), "index out of range")
}

fn character<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let [Cel::Text(text), Cel::Int(index)] = arguments else { return Err(EvaluationError::no_such_overload()) };
    context.steps.take_for_bytes(text.len())?;
    let at = usize::try_from(*index).map_err(|_| out_of_range(*index))?;
    match text.chars().nth(at) {
        Some(character) => Ok(Cel::text(character.to_string())),
        None if text.chars().count() == at => Ok(Cel::text("")),
        None => Err(out_of_range(*index)),
    }
}

/// Implements `indexOf` for strings and lists.
fn position<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext, from_end: bool) -> EvaluationResult<'a> {
    match arguments {
        [Cel::List(list), value] => super::lists::position(list, value, context, from_end),
        [Cel::Text(text), Cel::Text(part)] => text_position(text, part, None, context, from_end),
        [Cel::Text(text), Cel::Text(part), Cel::Int(offset)] => {
            text_position(text, part, Some(*offset), context, from_end)
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn text_position<'a>(
    text: &str,
    part: &str,
    offset: Option<i64>,
    context: &mut EvaluationContext,
    from_end: bool,
) -> EvaluationResult<'a> {
    let text: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    context.steps.take(text.len() + text.len() * part.len() / 8)?;
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if part.is_empty() {
        return Ok(Cel::Int(offset.unwrap_or(if from_end { length } else { 0 })));
    }
    let offset = match offset {
        None if part.len() > text.len() => return Ok(Cel::Int(-1)),
        None if from_end => length - 1,
        None => 0,
        Some(offset) => offset,
    };
    let start = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    if start >= text.len() || part.len() > text.len() {
        return Ok(Cel::Int(-1));
    }
    let last = text.len() - part.len();
    let is_at = |at: &usize| text[*at..*at + part.len()] == part[..];
    let found = if from_end { (0..=start.min(last)).rev().find(is_at) } else { (start..=last).find(is_at) };
    Ok(found.map_or(Cel::Int(-1), length_value))
}

fn replace<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (text, old, new, most) = match arguments {
        [Cel::Text(text), Cel::Text(old), Cel::Text(new)] => (text, old, new, -1),
        [Cel::Text(text), Cel::Text(old), Cel::Text(new), Cel::Int(most)] => (text, old, new, *most),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    // Takes steps for the maximum length of the result.
    let places = if old.is_empty() { text.len() + 1 } else { text.matches(&**old).count() };
    context.steps.take(text.len() + places.saturating_mul(new.len()))?;
    Ok(Cel::text(match usize::try_from(most) {
        Ok(most) => text.replacen(&**old, new, most),
        Err(_) => text.replace(&**old, new),
    }))
}

fn split<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (text, separator, most) = match arguments {
        [Cel::Text(text), Cel::Text(separator)] => (text, separator, -1),
        [Cel::Text(text), Cel::Text(separator), Cel::Int(most)] => (text, separator, *most),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    context.steps.take(text.len() * 2 + 1)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Cel::list(Vec::new()));
    }
    let parts: Vec<Cel<'a>> = if separator.is_empty() {
        characters(text, most)
    } else {
        text.splitn(most, &**separator).map(Cel::text).collect()
    };
    Ok(Cel::list(parts))
}

/// Splits into characters, with the rest in the last part if the number of parts is limited.
fn characters<'a>(text: &str, most: usize) -> Vec<Cel<'a>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == most {
            parts.push(Cel::text(rest));
            return parts;
        }
        let (one, after) = rest.split_at(first.len_utf8());
        parts.push(Cel::text(one));
        rest = after;
    }
    parts
}

fn substring<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (text, start, end) = match arguments {
        [Cel::Text(text), Cel::Int(start)] => (text, *start, None),
        [Cel::Text(text), Cel::Int(start), Cel::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    context.steps.take(text.len())?;
    if let Some(end) = end.filter(|end| start > *end) {
        let said = format!("invalid substring range. start: {start}, end: {end}");
        return Err(EvaluationError::with_redacted(said, "invalid substring range"));
    }
    let characters: Vec<char> = text.chars().collect();
    let within = |index: i64| {
        usize::try_from(index).ok().filter(|at| *at <= characters.len()).ok_or_else(|| out_of_range(index))
    };
    let from = within(start)?;
    let to = end.map_or(Ok(characters.len()), within)?;
    Ok(Cel::text(characters[from..to].iter().collect::<String>()))
}

fn join<'a>(arguments: &[Cel<'a>], context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let (list, separator) = match arguments {
        [Cel::List(list)] => (list, Text::Borrowed("")),
        [Cel::List(list), Cel::Text(separator)] => (list, separator.clone()),
        _ => return Err(EvaluationError::no_such_overload()),
    };
    joined(list, &separator, context)
}

fn joined<'a>(list: &List<'a>, separator: &str, context: &mut EvaluationContext) -> EvaluationResult<'a> {
    let mut text = String::new();
    for (index, element) in list.iter().enumerate() {
        let Cel::Text(part) = &element else { return Err(EvaluationError::new("join: invalid input")) };
        context.steps.take(1 + part.len() + separator.len())?;
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(part);
    }
    Ok(Cel::text(text))
}
